//! [`TreeEnsemble`](https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html): for each row of features and each
//! target, the sum (or mean, least, greatest) of the weights of the leaves that the trees lead to.

use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::ml::rows;
use crate::quantized::codes;
use crate::real::Real;
use crate::trees::{Aggregate, Ensemble, PostTransform, Rule, TreeNode, bits};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "TreeEnsemble",
    versions: (5, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct TreeEnsemble {
    trees: Ensemble,
    post: PostTransform,
}

/// The numbers of a tensor, which may begin at any address.
pub(crate) fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let bytes = tensor.dense_bytes()?;
    Some(match tensor.dtype() {
        DType::Float => bytes.as_chunks::<4>().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect(),
        DType::Double => bytes.as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
        DType::Float16 => {
            bytes.as_chunks::<2>().0.iter().map(|&b| half::f16::from_le_bytes(b).to_f64()).collect()
        }
        _ => return None,
    })
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "aggregate_function",
            "leaf_targetids",
            "leaf_weights",
            "membership_values",
            "n_targets",
            "nodes_falseleafs",
            "nodes_falsenodeids",
            "nodes_featureids",
            "nodes_hitrates",
            "nodes_missing_value_tracks_true",
            "nodes_modes",
            "nodes_splits",
            "nodes_trueleafs",
            "nodes_truenodeids",
            "post_transform",
            "tree_roots",
        ],
    )?;
    let attributes = &cx.node.attributes;
    let not_real = |name: &str| unsupported(name, "a tensor", "it holds no real numbers");
    let splits = numbers(attributes.tensor("nodes_splits")?).ok_or_else(|| not_real("nodes_splits"))?;
    let weights = numbers(attributes.tensor("leaf_weights")?).ok_or_else(|| not_real("leaf_weights"))?;
    let targets = attributes.ints("leaf_targetids")?;
    let mut members = match attributes.opt_tensor("membership_values")? {
        Some(tensor) => numbers(tensor).ok_or_else(|| not_real("membership_values"))?,
        None => Vec::new(),
    }
    .into_iter();
    let modes = codes(attributes.tensor("nodes_modes")?);
    let list = |name: &str| -> Result<&[i64], BuildError> {
        let list = attributes.ints(name)?;
        match list.len() == splits.len() {
            true => Ok(list),
            false => Err(unsupported(name, list.len(), &format!("there are {} nodes", splits.len()))),
        }
    };
    if modes.len() != splits.len() || weights.len() != targets.len() {
        return Err(unsupported("nodes_modes", modes.len(), &format!("there are {} nodes", splits.len())));
    }
    let index = |name: &str, value: i64| {
        usize::try_from(value).map_err(|_| unsupported(name, value, "it is not negative"))
    };
    let features = list("nodes_featureids")?;
    let (yes, yes_leaf) = (list("nodes_truenodeids")?, list("nodes_trueleafs")?);
    let (no, no_leaf) = (list("nodes_falsenodeids")?, list("nodes_falseleafs")?);
    let missing = attributes.opt_ints("nodes_missing_value_tracks_true")?.unwrap_or(&[]);
    let mut nodes = Vec::with_capacity(splits.len() + weights.len());
    for at in 0..splits.len() {
        let rule = match modes[at] {
            0 => Rule::LessEqual,
            1 => Rule::Less,
            2 => Rule::GreaterEqual,
            3 => Rule::Greater,
            4 => Rule::Equal,
            5 => Rule::NotEqual,
            6 => Rule::Member(members.by_ref().take_while(|v| !v.is_nan()).map(bits).collect()),
            other => return Err(unsupported("nodes_modes", other, "there is no such mode")),
        };
        // Leaves stand behind all branches.
        let link = |to: i64, leaf: i64| -> Result<usize, BuildError> {
            Ok(index("a node id", to)? + if leaf != 0 { splits.len() } else { 0 })
        };
        nodes.push(TreeNode::Branch {
            rule,
            feature: index("nodes_featureids", features[at])?,
            split: splits[at],
            missing_is_true: missing.get(at).is_some_and(|&m| m != 0),
            yes: link(yes[at], yes_leaf[at])?,
            no: link(no[at], no_leaf[at])?,
        });
    }
    for (&target, &weight) in targets.iter().zip(&weights) {
        nodes.push(TreeNode::Leaf(vec![(index("leaf_targetids", target)?, weight)]));
    }
    let roots = attributes.ints("tree_roots")?.iter().map(|&root| index("tree_roots", root));
    let roots = roots.collect::<Result<_, _>>()?;
    let aggregate = match attributes.int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(unsupported("aggregate_function", other, "0 to 3 are")),
    };
    let post = match attributes.int_or("post_transform", 0)? {
        0 => PostTransform::None,
        1 => PostTransform::Softmax,
        2 => PostTransform::Logistic,
        3 => PostTransform::SoftmaxZero,
        4 => PostTransform::Probit,
        other => return Err(unsupported("post_transform", other, "0 to 4 are")),
    };
    let targets = index("n_targets", attributes.int("n_targets")?)?;
    Ok(Box::new(TreeEnsemble { trees: Ensemble::new(nodes, roots, targets, aggregate)?, post }))
}

impl Kernel for TreeEnsemble {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f64, half::f16], T => score::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "FLOAT, DOUBLE or FLOAT16")))
    }
}

fn score<T: Real>(cx: &mut RunCx<'_>, node: &TreeEnsemble) -> Result<(), KernelError> {
    use crate::real::num::Wide;
    let (count, width, values) = rows(cx, 0)?;
    let trees = &node.trees;
    if width < trees.features {
        return Err(KernelError::Range {
            what: "the features of a row",
            value: width as i64,
            low: trees.features as i64,
            high: i64::MAX,
        });
    }
    let mut out = cx.alloc(T::DTYPE, &[count, trees.targets])?;
    let (mut scores, mut named) = (vec![0.0; trees.targets], vec![false; trees.targets]);
    let to = out.elements_mut::<T>().chunks_exact_mut(trees.targets.max(1));
    for (to, row) in to.zip(values.chunks_exact(width.max(1))) {
        trees.score(row, &mut scores, &mut named);
        node.post.apply(&mut scores);
        to.iter_mut().zip(&scores).for_each(|(t, &s)| *t = T::narrow(T::Wide::from_f64(s)));
    }
    cx.set(0, out.freeze());
    Ok(())
}
