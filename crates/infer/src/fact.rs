//! What inference knows of a value.

use std::fmt;
use std::sync::Arc;

use heirloom_mem::{DType, Tensor};
use heirloom_types::{EncodedValue, Layout, StructType, TensorSpec, Value, ValueType};

use crate::Expr;

/// The extent of an axis; `None` where nothing is known of it.
pub type Dim = Option<Expr>;

/// The type of a value, with extents as expressions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// A dense tensor.
    Tensor(TensorFact),
    /// A sequence of elements of one type; `None` where the elements' type is not known.
    Sequence(Option<Arc<Type>>),
    /// A value of the type, or none.
    Optional(Option<Arc<Type>>),
    /// A struct with the types of its fields; the declaration is the only source of them.
    Struct(Arc<StructType>),
    /// Any other type, as declared.
    Other(ValueType),
}

/// Element type and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFact {
    /// The element type.
    pub dtype: DType,
    /// Extents, outermost first; `None` where not even the rank is known.
    pub dims: Option<Vec<Dim>>,
}

/// One element of a small tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Elem {
    /// An integer.
    Int(Expr),
    /// A number of a floating type.
    Real(f64),
    /// A truth value.
    Bool(bool),
}

/// The bytes behind an encoded value.
#[derive(Clone, Debug)]
pub struct Physical {
    /// The value; layout and extent are in it.
    pub value: Arc<EncodedValue>,
    /// Records of a struct layout; `None` for affine codes.
    pub records: Option<usize>,
}

/// What is known of one value.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    /// Its (logical) type.
    pub ty: Option<Type>,
    /// For small tensors whose elements are shapes, indices and the like: what is known of each element, in row-major
    /// order.
    pub elems: Option<Vec<Option<Elem>>>,
    /// For an encoded constant: its layout and extent.
    pub physical: Option<Physical>,
}

/// Elements of larger tensors are not looked at.
pub(crate) const MOST_ELEMS: usize = 256;

impl Type {
    /// A tensor.
    pub fn tensor(dtype: DType, dims: Option<Vec<Dim>>) -> Type {
        Type::Tensor(TensorFact { dtype, dims })
    }

    /// The tensor's element type and shape, where the type is a dense tensor.
    pub fn as_tensor(&self) -> Option<&TensorFact> {
        match self {
            Type::Tensor(fact) => Some(fact),
            _ => None,
        }
    }

    /// Whether symbols and numbers alone tell every extent.
    pub fn is_closed(&self) -> bool {
        match self {
            Type::Tensor(fact) => fact.is_closed(),
            Type::Sequence(element) | Type::Optional(element) => {
                element.as_ref().is_some_and(|element| element.is_closed())
            }
            Type::Struct(_) | Type::Other(_) => true,
        }
    }

    /// The type in the terms of declarations: an expression is the symbol that reads like it, and what depends on data
    /// is unknown.
    pub fn to_value_type(&self) -> ValueType {
        let element = |element: &Option<Arc<Type>>| {
            Arc::new(element.as_ref().map_or(ValueType::AnyStruct, |it| it.to_value_type()))
        };
        match self {
            Type::Tensor(fact) => ValueType::Tensor(fact.to_spec()),
            Type::Sequence(inner) => ValueType::Sequence(element(inner)),
            Type::Optional(inner) => ValueType::Optional(element(inner)),
            Type::Struct(ty) => ValueType::Struct(ty.clone()),
            Type::Other(ty) => ty.clone(),
        }
    }
}

impl TensorFact {
    /// Whether symbols and numbers alone tell every extent.
    pub fn is_closed(&self) -> bool {
        let closed = |dim: &Dim| dim.as_ref().is_some_and(Expr::is_closed);
        self.dims.as_ref().is_some_and(|dims| dims.iter().all(closed))
    }

    /// The shape for the extents that `extent` gives; `None` where one is missing or depends on data.
    pub fn shape_at(&self, extent: &dyn Fn(&str) -> Option<i64>) -> Option<Vec<i64>> {
        self.dims.as_ref()?.iter().map(|dim| dim.as_ref()?.value(extent)).collect()
    }

    fn to_spec(&self) -> TensorSpec {
        let dim = |dim: &Dim| match dim {
            Some(expr) if expr.is_closed() => match expr.as_number().map(usize::try_from) {
                Some(Ok(extent)) => heirloom_types::Dim::Known(extent),
                Some(Err(_)) => heirloom_types::Dim::Unknown,
                None => heirloom_types::Dim::Param(expr.to_string().into()),
            },
            _ => heirloom_types::Dim::Unknown,
        };
        let dims = self.dims.as_ref().map(|dims| dims.iter().map(dim).collect());
        TensorSpec { dtype: self.dtype, dims }
    }
}

impl From<&ValueType> for Type {
    fn from(ty: &ValueType) -> Type {
        match ty {
            ValueType::Tensor(spec) => {
                let dim = |dim: &heirloom_types::Dim| match dim {
                    heirloom_types::Dim::Known(extent) => Some(Expr::from(*extent)),
                    heirloom_types::Dim::Param(name) => Expr::declared(name),
                    heirloom_types::Dim::Unknown => None,
                };
                let dims = spec.dims.as_ref().map(|dims| dims.iter().map(dim).collect());
                Type::Tensor(TensorFact { dtype: spec.dtype, dims })
            }
            ValueType::Sequence(element) => Type::Sequence(Some(Arc::new(Type::from(&**element)))),
            ValueType::Optional(element) => Type::Optional(Some(Arc::new(Type::from(&**element)))),
            ValueType::Struct(ty) => Type::Struct(ty.clone()),
            other => Type::Other(other.clone()),
        }
    }
}

impl fmt::Display for TensorFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        let Some(dims) = &self.dims else { return f.write_str("[…]") };
        f.write_str("[")?;
        for (at, dim) in dims.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            match dim {
                Some(expr) => write!(f, "{expr}")?,
                None => f.write_str("?")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = |f: &mut fmt::Formatter<'_>, what: &str, element: &Option<Arc<Type>>| match element {
            Some(element) => write!(f, "{what} {element}"),
            None => write!(f, "{what} ?"),
        };
        match self {
            Type::Tensor(fact) => write!(f, "{fact}"),
            Type::Sequence(element) => inner(f, "sequence of", element),
            Type::Optional(element) => inner(f, "optional", element),
            Type::Struct(ty) => write!(f, "{ty}"),
            Type::Other(ty) => write!(f, "{ty}"),
        }
    }
}

impl Fact {
    /// A value of the type, of whose elements nothing is known.
    pub fn of(ty: Type) -> Fact {
        Fact { ty: Some(ty), elems: None, physical: None }
    }

    pub(crate) fn tensor(dtype: DType, dims: Option<Vec<Dim>>) -> Fact {
        Fact::of(Type::tensor(dtype, dims))
    }

    /// The same with known elements, where their number fits the shape.
    pub(crate) fn with_elems(mut self, elems: Option<Vec<Option<Elem>>>) -> Fact {
        self.elems = elems.filter(|elems| elems.len() <= MOST_ELEMS && elems.iter().any(Option::is_some));
        self
    }

    /// What a constant tells.
    pub fn of_value(value: &Value) -> Fact {
        match value {
            Value::Tensor(tensor) => Fact::of(Type::from(&value.value_type())).with_elems(elements(tensor)),
            Value::Encoded(encoded) => Fact::of_encoded(encoded),
            other => Fact::of(Type::from(&other.value_type())),
        }
    }

    fn of_encoded(encoded: &Arc<EncodedValue>) -> Fact {
        let records = match &encoded.layout {
            Layout::Struct(layout) => Some(encoded.payload.len() / layout.record_bytes.max(1)),
            Layout::Affine(_) => None,
        };
        Fact {
            ty: Some(Type::from(&Value::Encoded(encoded.clone()).value_type())),
            elems: None,
            physical: Some(Physical { value: encoded.clone(), records }),
        }
    }
}

/// The elements of a small tensor, wherever it lies in memory.
fn elements(tensor: &Tensor) -> Option<Vec<Option<Elem>>> {
    fn list<const N: usize>(
        bytes: &[u8],
        elem: impl Fn([u8; N]) -> Option<Elem>,
    ) -> Option<Vec<Option<Elem>>> {
        Some(bytes.as_chunks::<N>().0.iter().map(|it| elem(*it)).collect())
    }
    fn int<T: TryInto<i64>>(value: T) -> Option<Elem> {
        value.try_into().ok().map(|value| Elem::Int(Expr::number(value)))
    }
    if tensor.len() > MOST_ELEMS {
        return None;
    }
    let bytes = tensor.dense_bytes()?;
    match tensor.dtype() {
        DType::Int64 => list(bytes, |it| int(i64::from_le_bytes(it))),
        DType::Int32 => list(bytes, |it| int(i32::from_le_bytes(it))),
        DType::Int16 => list(bytes, |it| int(i16::from_le_bytes(it))),
        DType::Int8 => list(bytes, |it| int(i8::from_le_bytes(it))),
        DType::Uint64 => list(bytes, |it| int(u64::from_le_bytes(it))),
        DType::Uint32 => list(bytes, |it| int(u32::from_le_bytes(it))),
        DType::Uint16 => list(bytes, |it| int(u16::from_le_bytes(it))),
        DType::Uint8 => list(bytes, |it| int(u8::from_le_bytes(it))),
        DType::Float => list(bytes, |it| Some(Elem::Real(f64::from(f32::from_le_bytes(it))))),
        DType::Float16 => list(bytes, |it| Some(Elem::Real(half::f16::from_le_bytes(it).to_f64()))),
        DType::Double => list(bytes, |it| Some(Elem::Real(f64::from_le_bytes(it)))),
        DType::Bool => list(bytes, |[it]| Some(Elem::Bool(it != 0))),
        _ => None,
    }
}
