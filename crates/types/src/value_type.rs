//! The types of values, as declared: tensors with symbolic extents, structs, sequences, maps, optionals.

use std::fmt;
use std::sync::Arc;

use heirloom_mem::{DType, Shape};

use crate::{StructType, TensorType};

/// The declared extent of one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// A symbol: the same extent wherever it stands in one model.
    Param(Arc<str>),
    /// Nothing is said.
    Unknown,
}

impl Dim {
    /// The extent, where it is a number.
    pub fn known(&self) -> Option<usize> {
        match self {
            Dim::Known(extent) => Some(*extent),
            _ => None,
        }
    }
}

impl From<usize> for Dim {
    fn from(extent: usize) -> Dim {
        Dim::Known(extent)
    }
}

impl From<&str> for Dim {
    fn from(symbol: &str) -> Dim {
        Dim::Param(symbol.into())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(extent) => write!(f, "{extent}"),
            Dim::Param(symbol) => f.write_str(symbol),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// The declared element type and shape of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    /// Element type; STRING for string tensors.
    pub dtype: DType,
    /// Extents, outermost first; `None` where not even the rank is declared.
    pub dims: Option<Vec<Dim>>,
}

impl TensorSpec {
    /// Elements of `dtype` in the concrete shape `shape`.
    pub fn concrete(dtype: DType, shape: &[usize]) -> TensorSpec {
        TensorSpec { dtype, dims: Some(shape.iter().copied().map(Dim::Known).collect()) }
    }

    /// The shape, where every extent is a number.
    pub fn shape(&self) -> Option<Shape> {
        self.dims.as_ref()?.iter().map(Dim::known).collect()
    }

    /// The type with its concrete shape, where every extent is a number.
    pub fn to_concrete(&self) -> Option<TensorType> {
        Some(TensorType { dtype: self.dtype, shape: self.shape()? })
    }
}

impl From<&TensorType> for TensorSpec {
    fn from(ty: &TensorType) -> TensorSpec {
        TensorSpec::concrete(ty.dtype, &ty.shape)
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        let Some(dims) = &self.dims else { return f.write_str("[…]") };
        f.write_str("[")?;
        for (i, dim) in dims.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

/// The declared type of a value.
///
/// Two types are equal when values of the one are values of the other: struct types by their
/// [identity and content](StructType), names of symbols literally.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ValueType {
    /// A dense tensor, of strings too.
    Tensor(TensorSpec),
    /// A sparse tensor.
    Sparse(TensorSpec),
    /// A struct of one declared type.
    Struct(Arc<StructType>),
    /// The unconstrained category: any struct. Only as an element of sequences and maps.
    AnyStruct,
    /// A sequence of elements of one type.
    Sequence(Arc<ValueType>),
    /// A map.
    Map {
        /// An integer type or STRING.
        key: DType,
        /// The type of each value.
        value: Arc<ValueType>,
    },
    /// A value of the type, or none.
    Optional(Arc<ValueType>),
    /// A type that only its domain knows.
    Opaque {
        /// The domain.
        domain: Arc<str>,
        /// The type's name there.
        name: Arc<str>,
    },
}

impl ValueType {
    /// A tensor with a concrete shape; `&[]` for a scalar.
    pub fn tensor(dtype: DType, shape: &[usize]) -> ValueType {
        ValueType::Tensor(TensorSpec::concrete(dtype, shape))
    }

    /// A tensor with symbolic or unknown extents.
    pub fn symbolic(dtype: DType, dims: impl IntoIterator<Item = Dim>) -> ValueType {
        ValueType::Tensor(TensorSpec { dtype, dims: Some(dims.into_iter().collect()) })
    }

    /// A tensor of which not even the rank is known.
    pub fn unranked(dtype: DType) -> ValueType {
        ValueType::Tensor(TensorSpec { dtype, dims: None })
    }

    /// A sequence of elements of `element`.
    pub fn sequence(element: ValueType) -> ValueType {
        ValueType::Sequence(Arc::new(element))
    }

    /// A value of `element` or none.
    pub fn optional(element: ValueType) -> ValueType {
        ValueType::Optional(Arc::new(element))
    }

    /// A map from `key` (an integer type or STRING) to `value`.
    pub fn map(key: DType, value: ValueType) -> ValueType {
        ValueType::Map { key, value: Arc::new(value) }
    }

    /// The tensor's declared type, where the type is a dense tensor.
    pub fn as_tensor(&self) -> Option<&TensorSpec> {
        match self {
            ValueType::Tensor(spec) => Some(spec),
            _ => None,
        }
    }

    /// Whether values of the type hold strings anywhere: elements, nested fields, constants, map keys, through
    /// references too. Behind [`ValueType::AnyStruct`] nothing is known before a value is there: see
    /// [`Value::contains_strings`](crate::Value::contains_strings).
    pub fn contains_strings(&self) -> bool {
        match self {
            ValueType::Tensor(spec) | ValueType::Sparse(spec) => spec.dtype == DType::String,
            ValueType::Struct(ty) => ty.contains_strings(),
            ValueType::Sequence(element) | ValueType::Optional(element) => element.contains_strings(),
            ValueType::Map { key, value } => *key == DType::String || value.contains_strings(),
            ValueType::AnyStruct | ValueType::Opaque { .. } => false,
        }
    }

    /// What kind of type this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            ValueType::Tensor(_) => "tensor",
            ValueType::Sparse(_) => "sparse tensor",
            ValueType::Struct(_) | ValueType::AnyStruct => "struct",
            ValueType::Sequence(_) => "sequence",
            ValueType::Map { .. } => "map",
            ValueType::Optional(_) => "optional",
            ValueType::Opaque { .. } => "opaque value",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Tensor(spec) => write!(f, "{spec}"),
            ValueType::Sparse(spec) => write!(f, "sparse {spec}"),
            ValueType::Struct(ty) => write!(f, "{ty}"),
            ValueType::AnyStruct => f.write_str("any struct"),
            ValueType::Sequence(element) => write!(f, "sequence of {element}"),
            ValueType::Map { key, value } => write!(f, "map from {key} to {value}"),
            ValueType::Optional(element) => write!(f, "optional {element}"),
            ValueType::Opaque { domain, name } => write!(f, "opaque `{domain}`/`{name}`"),
        }
    }
}
