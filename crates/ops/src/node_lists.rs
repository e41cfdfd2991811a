//! Trees as the older operators write them: lists of nodes with the ids of their trees.

use std::collections::HashMap;

use heirloom_graph::Attributes;
use heirloom_runtime::BuildError;

use crate::attributes::unsupported;
use crate::ml::tree_ensemble::numbers;
use crate::trees::{Aggregate, Ensemble, Rule, TreeNode};

/// The names of the attributes that say what nodes there are.
pub(crate) const NODES: [&str; 11] = [
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_hitrates",
    "nodes_hitrates_as_tensor",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_nodeids",
    "nodes_treeids",
    "nodes_truenodeids",
    "nodes_values",
    "nodes_values_as_tensor",
];

/// A list of numbers: FLOATS, or a tensor under another name.
pub(crate) fn reals(attributes: &Attributes, name: &str) -> Result<Option<Vec<f64>>, BuildError> {
    if let Some(list) = attributes.opt_floats(name)? {
        return Ok(Some(list.iter().map(|&v| f64::from(v)).collect()));
    }
    let other = format!("{name}_as_tensor");
    match attributes.opt_tensor(&other)? {
        Some(tensor) => numbers(tensor)
            .map(Some)
            .ok_or_else(|| unsupported(&other, tensor.dtype(), "it holds no real numbers")),
        None => Ok(None),
    }
}

/// Trees whose leaves have the weights of attributes `PREFIX_treeids`, `PREFIX_nodeids`, `PREFIX_ids` and
/// `PREFIX_weights`.
pub(crate) fn ensemble(
    attributes: &Attributes,
    prefix: &str,
    targets: usize,
    aggregate: Aggregate,
) -> Result<Ensemble, BuildError> {
    let trees = attributes.ints("nodes_treeids")?;
    let ids = attributes.ints("nodes_nodeids")?;
    let modes = attributes.strings("nodes_modes")?;
    let features = attributes.ints("nodes_featureids")?;
    let (yes, no) = (attributes.ints("nodes_truenodeids")?, attributes.ints("nodes_falsenodeids")?);
    let values = reals(attributes, "nodes_values")?.unwrap_or_default();
    let missing = attributes.opt_ints("nodes_missing_value_tracks_true")?.unwrap_or(&[]);
    let count = trees.len();
    for (name, len) in [
        ("nodes_nodeids", ids.len()),
        ("nodes_modes", modes.len()),
        ("nodes_featureids", features.len()),
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
        ("nodes_values", values.len()),
    ] {
        if len != count {
            return Err(unsupported(name, len, &format!("there are {count} nodes")));
        }
    }
    let places: HashMap<(i64, i64), usize> =
        trees.iter().zip(ids).enumerate().map(|(at, (&tree, &id))| ((tree, id), at)).collect();
    let find = |tree: i64, id: i64| {
        places
            .get(&(tree, id))
            .copied()
            .ok_or_else(|| unsupported("a node id", id, "its tree has no such node"))
    };
    let mut nodes = Vec::with_capacity(count);
    let mut roots = Vec::new();
    for at in 0..count {
        if at == 0 || trees[at] != trees[at - 1] {
            roots.push(at);
        }
        if &*modes[at] == b"LEAF" {
            nodes.push(TreeNode::Leaf(Vec::new()));
            continue;
        }
        let rule = Rule::named(&modes[at]).ok_or_else(|| {
            unsupported("nodes_modes", String::from_utf8_lossy(&modes[at]), "there is no such mode")
        })?;
        nodes.push(TreeNode::Branch {
            rule,
            feature: usize::try_from(features[at])
                .map_err(|_| unsupported("nodes_featureids", features[at], "it is not negative"))?,
            split: values[at],
            missing_is_true: missing.get(at).is_some_and(|&m| m != 0),
            yes: find(trees[at], yes[at])?,
            no: find(trees[at], no[at])?,
        });
    }
    let list = |name: &str| attributes.ints(&format!("{prefix}_{name}"));
    let weights = reals(attributes, &format!("{prefix}_weights"))?.unwrap_or_default();
    let (leaf_trees, leaf_ids, leaf_targets) = (list("treeids")?, list("nodeids")?, list("ids")?);
    if [leaf_trees.len(), leaf_ids.len(), leaf_targets.len()] != [weights.len(); 3] {
        return Err(unsupported(
            &format!("{prefix}_weights"),
            weights.len(),
            "there is one for each leaf's target",
        ));
    }
    for (at, &weight) in weights.iter().enumerate() {
        let target = usize::try_from(leaf_targets[at])
            .map_err(|_| unsupported("a target id", leaf_targets[at], "it is not negative"))?;
        match &mut nodes[find(leaf_trees[at], leaf_ids[at])?] {
            TreeNode::Leaf(list) => list.push((target, weight)),
            TreeNode::Branch { .. } => {
                return Err(unsupported("a leaf's node id", leaf_ids[at], "the node is a branch"));
            }
        }
    }
    Ensemble::new(nodes, roots, targets, aggregate)
}
