//! Edits of one graph.

use heirloom_graph::NodeId;
use heirloom_proto::{EncodedValueProto, NodeProto, TensorProto};
use rustc_hash::{FxHashMap, FxHashSet};

use super::PassCx;
use super::view::View;
use crate::message::int64s;

/// Changes to a graph.
#[derive(Debug, Default)]
pub struct Edits {
    /// A value whose readers read another one instead.
    pub(super) replaced: FxHashMap<String, String>,
    /// A value that a node makes under another name, which its readers read.
    pub(super) renamed: FxHashMap<String, String>,
    /// Nodes that go, and those that stand in their place.
    pub(super) nodes: FxHashMap<usize, Vec<NodeProto>>,
    pub(super) constants: FxHashSet<String>,
    pub(super) made: Vec<TensorProto>,
    pub(super) encoded: Vec<EncodedValueProto>,
    /// Functions of the model that go.
    pub(super) functions: FxHashSet<usize>,
    /// Operator sets that new nodes need.
    pub(super) imports: Vec<(String, i64)>,
    /// The version of the standard operators that new nodes need.
    pub(super) opset: i64,
}

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
            && self.constants.is_empty()
            && self.made.is_empty()
            && self.encoded.is_empty()
            && self.replaced.is_empty()
            && self.functions.is_empty()
    }

    pub(super) fn replace(&mut self, old: &str, new: &str) {
        self.replaced.insert(old.into(), new.into());
    }

    pub(super) fn rename(&mut self, old: &str, new: &str) {
        self.renamed.insert(old.into(), new.into());
    }

    pub(super) fn touches(&self, value: &str) -> bool {
        let in_map =
            |map: &FxHashMap<String, String>| map.contains_key(value) || map.values().any(|it| it == value);
        in_map(&self.replaced) || in_map(&self.renamed)
    }

    pub(super) fn remove_node(&mut self, node: NodeId) {
        self.swap(node, Vec::new());
    }

    /// Puts nodes in the place of one; they make its outputs under their names.
    pub(super) fn swap(&mut self, node: NodeId, by: Vec<NodeProto>) {
        self.nodes.insert(node.0 as usize, by);
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains_key(&(node.0 as usize))
    }

    pub(super) fn remove_constant(&mut self, name: &str) {
        self.constants.insert(name.into());
    }

    pub(super) fn make(&mut self, constant: TensorProto) {
        self.made.push(constant);
    }

    /// Makes a vector of INT64 for a node, and gives its name.
    pub(super) fn ints(
        &mut self,
        cx: &PassCx<'_>,
        view: &View<'_>,
        node: NodeId,
        part: &str,
        values: &[i64],
    ) -> String {
        let name = cx.fresh(&self.base(view, node), part);
        self.make(int64s(&name, values));
        name
    }

    /// What names of values for a node begin with: the name of its first output.
    pub(super) fn base(&self, view: &View<'_>, node: NodeId) -> String {
        let first = view.graph.node(node).outputs.iter().flatten().next();
        first.map_or_else(|| String::from("node"), |value| view.name(*value).into())
    }

    pub(super) fn needs(&mut self, opset: i64) {
        self.opset = self.opset.max(opset);
    }

    /// What a reader of `name` reads afterwards.
    pub(super) fn read<'e>(&'e self, name: &'e str) -> &'e str {
        let mut name = name;
        for _ in 0..=self.replaced.len() {
            match self.replaced.get(name) {
                Some(next) => name = next,
                None => break,
            }
        }
        self.renamed.get(name).map_or(name, String::as_str)
    }

    /// The changes of names alone, but those of names that `inner` says a body has for values of its own.
    pub(super) fn names_without(&self, inner: impl Fn(&str) -> bool) -> Edits {
        let keep = |map: &FxHashMap<String, String>| {
            map.iter().filter(|(from, _)| !inner(from)).map(|(a, b)| (a.clone(), b.clone())).collect()
        };
        Edits { replaced: keep(&self.replaced), renamed: keep(&self.renamed), ..Edits::default() }
    }
}
