//! Nodes and their attributes.

use std::sync::Arc;

use heirloom_mem::Tensor;

use crate::Graph;

/// A value of one graph: an input, an initializer or a node's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// A node of one graph, by its place in the graph's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// One operator call.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's name; empty where the file gives none.
    pub name: String,
    /// The operator, such as `MatMul`.
    pub op_type: String,
    /// The operator's domain; empty for ai.onnx.
    pub domain: String,
    /// The overload of a model-local function; usually empty.
    pub overload: String,
    /// Inputs in order; `None` where an optional input is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Outputs in order; `None` where an optional output is left out.
    pub outputs: Vec<Option<ValueId>>,
    /// Attributes by name.
    pub attributes: Attributes,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AttrValue {
    /// FLOAT
    Float(f32),
    /// INT
    Int(i64),
    /// STRING: bytes, UTF-8 by convention.
    String(Box<[u8]>),
    /// TENSOR of fixed-width elements.
    Tensor(Tensor),
    /// TENSOR of strings.
    Strings1(Arc<heirloom_types::StringTensor>),
    /// GRAPH: the body of a control-flow operator.
    Graph(Arc<Graph>),
    /// FLOATS
    Floats(Vec<f32>),
    /// INTS
    Ints(Vec<i64>),
    /// STRINGS
    Strings(Vec<Box<[u8]>>),
    /// TENSORS
    Tensors(Vec<Tensor>),
    /// GRAPHS
    Graphs(Vec<Arc<Graph>>),
    /// SPARSE_TENSOR, SPARSE_TENSORS, TYPE_PROTO, TYPE_PROTOS: kept as they are in the file.
    Other(heirloom_proto::AttributeProto),
    /// Within a function: the value of the caller's attribute of this name.
    Reference(String),
}

/// Why an attribute cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttrError {
    /// The operator needs the attribute.
    #[error("attribute `{name}` is missing")]
    Missing {
        /// The attribute.
        name: String,
    },
    /// The attribute has another type.
    #[error("attribute `{name}` is no {expected}")]
    Type {
        /// The attribute.
        name: String,
        /// The type that the operator takes.
        expected: &'static str,
    },
}

/// The attributes of one node.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<(String, AttrValue)>);

macro_rules! getters {
    ($($(#[$doc:meta])* $get:ident, $opt:ident: $variant:ident => $ty:ty, $expected:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// When the attribute is missing or has another type.
        pub fn $get(&self, name: &str) -> Result<$ty, AttrError> {
            self.$opt(name)?.ok_or_else(|| AttrError::Missing { name: name.into() })
        }

        $(#[$doc])*
        /// `None` when it is absent.
        ///
        /// # Errors
        /// When the attribute has another type.
        pub fn $opt(&self, name: &str) -> Result<Option<$ty>, AttrError> {
            match self.get(name) {
                None => Ok(None),
                Some(AttrValue::$variant(v)) => Ok(Some(Self::out(v))),
                Some(_) => Err(AttrError::Type { name: name.into(), expected: $expected }),
            }
        }
    )*};
}

trait Out<'a, T> {
    fn out(v: &'a T) -> Self;
}
impl<'a, T: Copy> Out<'a, T> for T {
    fn out(v: &'a T) -> T {
        *v
    }
}
impl<'a, T> Out<'a, Vec<T>> for &'a [T] {
    fn out(v: &'a Vec<T>) -> &'a [T] {
        v
    }
}
impl<'a> Out<'a, Box<[u8]>> for &'a [u8] {
    fn out(v: &'a Box<[u8]>) -> &'a [u8] {
        v
    }
}
impl<'a, T> Out<'a, T> for &'a T {
    fn out(v: &'a T) -> &'a T {
        v
    }
}

impl Attributes {
    fn out<'a, T, R: Out<'a, T>>(v: &'a T) -> R {
        R::out(v)
    }

    /// The attribute named `name`.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: impl Into<String>, value: AttrValue) {
        let name = name.into();
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, v)) => *v = value,
            None => self.0.push((name, value)),
        }
    }

    /// All attributes in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        self.0.iter().map(|(n, v)| (&**n, v))
    }

    getters! {
        /// An INT attribute.
        int, opt_int: Int => i64, "INT";
        /// A FLOAT attribute.
        float, opt_float: Float => f32, "FLOAT";
        /// An INTS attribute.
        ints, opt_ints: Ints => &[i64], "INTS";
        /// A FLOATS attribute.
        floats, opt_floats: Floats => &[f32], "FLOATS";
        /// A STRING attribute's bytes.
        string, opt_string: String => &[u8], "STRING";
        /// A STRINGS attribute's elements.
        strings, opt_strings: Strings => &[Box<[u8]>], "STRINGS";
        /// A TENSOR attribute.
        tensor, opt_tensor: Tensor => &Tensor, "TENSOR";
        /// A GRAPH attribute.
        graph, opt_graph: Graph => &Arc<Graph>, "GRAPH";
    }

    /// An INT attribute or its default.
    ///
    /// # Errors
    /// When the attribute has another type.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, AttrError> {
        Ok(self.opt_int(name)?.unwrap_or(default))
    }

    /// A FLOAT attribute or its default.
    ///
    /// # Errors
    /// When the attribute has another type.
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, AttrError> {
        Ok(self.opt_float(name)?.unwrap_or(default))
    }
}

impl FromIterator<(String, AttrValue)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, AttrValue)>>(iter: I) -> Attributes {
        let mut attributes = Attributes::default();
        iter.into_iter().for_each(|(name, value)| attributes.set(name, value));
        attributes
    }
}
