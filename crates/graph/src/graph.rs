//! A graph as sessions, passes and reports read it: values by number, nodes in an order that can be executed.

use std::sync::Arc;

use heirloom_mem::Tensor;
use heirloom_types::{EncodedValue, StringTensor, TensorSpec, Value, ValueType};
use rustc_hash::FxHashMap;

use crate::{Error, Node, NodeId, Unavailable, ValueId};

/// A graph: a model's main one, a function's body, or the body of a control-flow operator. Immutable.
///
/// A [`ValueId`] or [`NodeId`] belongs to the graph that gave it; methods that take one panic for a number that
/// the graph does not have.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) values: Vec<ValueEntry>,
    pub(crate) by_name: FxHashMap<Arc<str>, ValueId>,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) outputs: Vec<ValueId>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) order: Vec<NodeId>,
    pub(crate) initializers: Vec<(ValueId, Initializer)>,
    /// The initializers of inputs, by their place in `initializers`.
    pub(crate) overridable: FxHashMap<ValueId, u32>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) bindings: Vec<Binding>,
}

/// What a graph knows of one value.
#[derive(Clone, Debug)]
pub(crate) struct ValueEntry {
    pub(crate) name: Arc<str>,
    pub(crate) ty: Option<ValueType>,
    pub(crate) source: Source,
}

/// Where a value comes from. An initializer that is an input too counts as an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Input,
    Initializer(u32),
    Node(NodeId),
    Capture,
    /// Named, and made by nothing: a fault, which importing reports.
    Nothing,
}

/// A value of the enclosing graph that a body reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The value in the graph directly around the body.
    pub outer: ValueId,
    /// The same value as the body names it.
    pub inner: ValueId,
}

/// An input whose value is the value that an output had in the call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The graph's input.
    pub input: ValueId,
    /// The graph's output that supplies its next value.
    pub output: ValueId,
}

/// A constant of a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Initializer {
    /// A dense tensor of fixed-width elements.
    Tensor(Tensor),
    /// A dense tensor of strings.
    Strings(Arc<StringTensor>),
    /// Bytes in a declared layout.
    Encoded(Arc<EncodedValue>),
    /// A sparse tensor.
    Sparse(Arc<SparseTensor>),
    /// A constant whose payload lies in a file that was not at hand when the model was opened.
    Unavailable(Arc<Unavailable>),
}

/// A sparse tensor in coordinate form.
#[derive(Clone, Debug)]
pub struct SparseTensor {
    /// The elements that are not zero, `[count]`.
    pub values: Tensor,
    /// INT64: linear positions `[count]` or coordinates `[count, rank]`, ascending.
    pub indices: Tensor,
    /// The dense shape.
    pub shape: heirloom_mem::Shape,
}

impl Initializer {
    /// The constant as a value; handles are cloned, never payloads.
    ///
    /// # Errors
    /// When the payload is not at hand, or the constant is sparse (a sparse tensor is no [`Value`]).
    pub fn value(&self) -> Result<Value, Error> {
        match self {
            Initializer::Tensor(tensor) => Ok(Value::Tensor(tensor.clone())),
            Initializer::Strings(strings) => Ok(Value::Strings(strings.clone())),
            Initializer::Encoded(encoded) => Ok(Value::Encoded(encoded.clone())),
            Initializer::Sparse(sparse) => Err(Error::SparseValue { shape: sparse.shape.clone() }),
            Initializer::Unavailable(why) => Err(Error::Unavailable(why.clone())),
        }
    }

    /// The (logical) type that operators see; `None` for encoded values without tensor meaning.
    pub fn value_type(&self) -> Option<ValueType> {
        Some(match self {
            Initializer::Tensor(tensor) => ValueType::tensor(tensor.dtype(), tensor.shape()),
            Initializer::Strings(strings) => ValueType::tensor(heirloom_mem::DType::String, &strings.shape),
            Initializer::Encoded(encoded) => ValueType::Tensor(TensorSpec::from(encoded.logical.as_ref()?)),
            Initializer::Sparse(sparse) => {
                ValueType::Sparse(TensorSpec::concrete(sparse.values.dtype(), &sparse.shape))
            }
            Initializer::Unavailable(why) => ValueType::Tensor(TensorSpec::from(why.logical.as_ref()?)),
        })
    }
}

fn at(index: u32) -> usize {
    usize::try_from(index).expect("an index fits the address space")
}

impl Graph {
    /// The graph's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many values the graph has; their ids are 0 to this number.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = ValueId> + use<> {
        (0..u32::try_from(self.values.len()).expect("fewer than 2^32 values")).map(ValueId)
    }

    /// The value named `name`, captured ones included.
    pub fn value(&self, name: &str) -> Option<ValueId> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn entry(&self, value: ValueId) -> &ValueEntry {
        &self.values[at(value.0)]
    }

    /// A value's name.
    pub fn value_name(&self, value: ValueId) -> &str {
        &self.values[at(value.0)].name
    }

    /// A value's name, shared.
    pub fn shared_name(&self, value: ValueId) -> &Arc<str> {
        &self.values[at(value.0)].name
    }

    /// A value's declared type: of an input, an output or a value in between; for an initializer that nothing
    /// declares, its own.
    pub fn value_type(&self, value: ValueId) -> Option<&ValueType> {
        self.values[at(value.0)].ty.as_ref()
    }

    /// The node that makes a value; `None` for inputs, initializers and captured values.
    pub fn producer(&self, value: ValueId) -> Option<NodeId> {
        match self.values[at(value.0)].source {
            Source::Node(node) => Some(node),
            _ => None,
        }
    }

    /// The nodes as they stand in the file; a [`NodeId`] is an index into them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[at(node.0)]
    }

    /// An order in which each node stands behind those whose outputs it (or a body of it) reads: the file's, where
    /// the file is sorted.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// The nodes in [`order`](Graph::order).
    pub fn ordered(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.order.iter().map(|&id| (id, self.node(id)))
    }

    /// Whether the file's order is the order of execution, as ONNX asks.
    pub fn is_sorted(&self) -> bool {
        self.order.is_sorted()
    }

    /// The inputs in order. One that has an initializer may be left out of a call.
    pub fn inputs(&self) -> &[ValueId] {
        &self.inputs
    }

    /// The outputs in order; a value may stand for several.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// Whether a value is an input.
    pub fn is_input(&self, value: ValueId) -> bool {
        self.values[at(value.0)].source == Source::Input
    }

    /// The inputs that every call must supply: those without an initializer.
    pub fn required_inputs(&self) -> impl Iterator<Item = ValueId> {
        self.inputs.iter().copied().filter(|&value| self.initializer(value).is_none())
    }

    /// The constants in the order of the file: dense, sparse, encoded.
    pub fn initializers(&self) -> impl ExactSizeIterator<Item = (ValueId, &Initializer)> {
        self.initializers.iter().map(|(value, initializer)| (*value, initializer))
    }

    /// The constant of a value, whether or not a feed may override it.
    pub fn initializer(&self, value: ValueId) -> Option<&Initializer> {
        match self.values[at(value.0)].source {
            Source::Initializer(index) => self.initializers.get(at(index)).map(|(_, it)| it),
            Source::Input => self.overridable.get(&value).map(|&index| &self.initializers[at(index)].1),
            _ => None,
        }
    }

    /// Whether a value is a constant that no feed can override.
    pub fn is_constant(&self, value: ValueId) -> bool {
        matches!(self.values[at(value.0)].source, Source::Initializer(_))
    }

    /// For a body: the values of the graph directly around it that it reads, each once.
    pub fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// Which output supplies which input of the next call; empty in bodies and functions.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The binding that supplies an input.
    pub fn binding_of(&self, input: ValueId) -> Option<Binding> {
        self.bindings.iter().copied().find(|binding| binding.input == input)
    }
}

impl Node {
    /// The values of this graph that the node's bodies read beside its inputs; one may occur several times.
    pub fn captures(&self) -> impl Iterator<Item = ValueId> {
        self.bodies().flat_map(|body| body.captures().iter().map(|capture| capture.outer))
    }

    /// The bodies in the node's attributes.
    pub fn bodies(&self) -> impl Iterator<Item = &Arc<Graph>> {
        self.attributes.iter().flat_map(|(_, value)| match value {
            crate::AttrValue::Graph(body) => std::slice::from_ref(body),
            crate::AttrValue::Graphs(bodies) => bodies,
            _ => &[],
        })
    }
}
