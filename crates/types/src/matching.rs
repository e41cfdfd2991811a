//! Whether a value is one of a declared type.

use std::sync::Arc;

use heirloom_mem::DType;
use rustc_hash::FxHashMap;

use crate::struct_type::Content;
use crate::{Difference, Dim, MapKey, StructType, TensorSpec, TensorType, Value, ValueType};

/// The extents that symbols stand for in one call.
#[derive(Clone, Debug, Default)]
pub struct DimBindings(FxHashMap<Arc<str>, Bound>);

#[derive(Clone, Debug)]
struct Bound {
    extent: usize,
    /// The value and axis that bound it.
    place: String,
    axis: usize,
}

impl DimBindings {
    /// No symbol bound.
    pub fn new() -> DimBindings {
        DimBindings::default()
    }

    /// The extent that a symbol stands for, once a value has bound it.
    pub fn get(&self, symbol: &str) -> Option<usize> {
        self.0.get(symbol).map(|bound| bound.extent)
    }

    /// All bound symbols, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(symbol, bound)| (&**symbol, bound.extent))
    }

    fn bind(&mut self, symbol: &Arc<str>, extent: usize, path: &str, axis: usize) -> Result<(), Mismatch> {
        match self.0.get(symbol) {
            None => {
                let bound = Bound { extent, place: path.into(), axis };
                self.0.insert(symbol.clone(), bound);
                Ok(())
            }
            Some(bound) if bound.extent == extent => Ok(()),
            Some(bound) => Err(Mismatch::Symbol {
                path: path.into(),
                axis,
                symbol: symbol.clone(),
                actual: extent,
                bound: bound.extent,
                bound_by: bound.place.clone(),
                bound_axis: bound.axis,
            }),
        }
    }
}

/// The first way in which a value differs from a declared type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another kind of value.
    #[error("`{path}` is a {actual}, where {expected} is declared")]
    Kind {
        /// The part of the value.
        path: String,
        /// The declared type.
        expected: String,
        /// What the value is.
        actual: String,
    },
    /// Another element type.
    #[error("`{path}` holds {actual}, where {expected} is declared")]
    ElementType {
        /// The part of the value.
        path: String,
        /// The declared type.
        expected: DType,
        /// The value's type.
        actual: DType,
    },
    /// Another rank.
    #[error("`{path}` has the shape {actual:?}, where {expected} is declared")]
    Rank {
        /// The part of the value.
        path: String,
        /// The declared type.
        expected: String,
        /// The value's shape.
        actual: Vec<usize>,
    },
    /// Another extent than the declared number.
    #[error("axis {axis} of `{path}` is {actual}, where {expected} is declared")]
    Extent {
        /// The part of the value.
        path: String,
        /// The axis.
        axis: usize,
        /// The declared extent.
        expected: usize,
        /// The value's extent.
        actual: usize,
    },
    /// Another extent than the symbol stands for already.
    #[error(
        "axis {axis} of `{path}` is {actual}, but `{symbol}` is {bound} by axis {bound_axis} of `{bound_by}`"
    )]
    Symbol {
        /// The part of the value.
        path: String,
        /// The axis.
        axis: usize,
        /// The symbol.
        symbol: Arc<str>,
        /// The value's extent.
        actual: usize,
        /// What the symbol stands for.
        bound: usize,
        /// The value that bound it.
        bound_by: String,
        /// The axis that bound it.
        bound_axis: usize,
    },
    /// A declared field is missing.
    #[error("`{path}` lacks the field `{field}`")]
    MissingField {
        /// The part of the value.
        path: String,
        /// The field.
        field: Arc<str>,
    },
    /// A field that is not declared, or a constant, which values do not carry.
    #[error("`{path}` has a field `{field}`, which its type does not declare as a value")]
    UnknownField {
        /// The part of the value.
        path: String,
        /// The field.
        field: Arc<str>,
    },
    /// Records of another struct type.
    #[error("`{path}` holds records of {actual}, where {expected} is declared{}", detail(difference))]
    Layout {
        /// The part of the value.
        path: String,
        /// The declared type.
        expected: String,
        /// The records' type.
        actual: String,
        /// Where the declarations differ; `None` when only their identities do.
        difference: Option<Box<Difference>>,
    },
    /// A map key of another type.
    #[error("`{path}` has the key {key}, where {expected} keys are declared")]
    Key {
        /// The part of the value.
        path: String,
        /// The declared key type.
        expected: DType,
        /// The key.
        key: String,
    },
}

fn detail(difference: &Option<Box<Difference>>) -> String {
    difference.as_ref().map_or_else(String::new, |difference| format!(" ({difference})"))
}

impl ValueType {
    /// Whether `value`, called `name` in messages, is of this type. Symbols are bound by the first extent they meet
    /// and must agree from then on, over all values that are checked with the same `dims`.
    ///
    /// Encoded values are of their struct type, or any struct; where a tensor is declared they do not fit.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check(&self, value: &Value, name: &str, dims: &mut DimBindings) -> Result<(), Mismatch> {
        Matching { dims, logical: false }.value(self, value, name)
    }

    /// As [`check`](ValueType::check), but an encoded value also fits where its logical tensor does: for consumers
    /// that take each block of a structure in a layout of its own.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check_logical(&self, value: &Value, name: &str, dims: &mut DimBindings) -> Result<(), Mismatch> {
        Matching { dims, logical: true }.value(self, value, name)
    }
}

impl TensorSpec {
    /// Whether a tensor of this element type and shape, called `name` in messages, is one of this type.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check(
        &self,
        dtype: DType,
        shape: &[usize],
        name: &str,
        dims: &mut DimBindings,
    ) -> Result<(), Mismatch> {
        let path = || name.to_owned();
        if self.dtype != dtype {
            return Err(Mismatch::ElementType { path: path(), expected: self.dtype, actual: dtype });
        }
        let Some(declared) = &self.dims else { return Ok(()) };
        if declared.len() != shape.len() {
            let (expected, actual) = (self.to_string(), Vec::from(shape));
            return Err(Mismatch::Rank { path: path(), expected, actual });
        }
        for (axis, (dim, &actual)) in declared.iter().zip(shape).enumerate() {
            match dim {
                Dim::Unknown => {}
                Dim::Known(expected) if *expected == actual => {}
                Dim::Known(expected) => {
                    return Err(Mismatch::Extent { path: path(), axis, expected: *expected, actual });
                }
                Dim::Param(symbol) => dims.bind(symbol, actual, name, axis)?,
            }
        }
        Ok(())
    }
}

struct Matching<'a> {
    dims: &'a mut DimBindings,
    logical: bool,
}

impl Matching<'_> {
    fn value(&mut self, ty: &ValueType, value: &Value, path: &str) -> Result<(), Mismatch> {
        match (ty, value) {
            (ValueType::Tensor(spec), Value::Tensor(tensor)) => {
                spec.check(tensor.dtype(), tensor.shape(), path, self.dims)
            }
            (ValueType::Tensor(spec), Value::Strings(strings)) => {
                spec.check(DType::String, &strings.shape, path, self.dims)
            }
            (ValueType::Tensor(spec), Value::Encoded(encoded)) if self.logical => match &encoded.logical {
                Some(TensorType { dtype, shape }) => spec.check(*dtype, shape, path, self.dims),
                None => Err(wrong_kind(ty, value, path)),
            },
            (ValueType::AnyStruct, Value::Struct(_) | Value::Encoded(_)) => Ok(()),
            (ValueType::Struct(ty), Value::Struct(fields)) => self.fields(ty, &fields.fields, path),
            (ValueType::Struct(ty), Value::Encoded(encoded)) if encoded.layout.as_struct().is_some() => {
                let actual = encoded.layout.as_struct().map(|layout| &layout.declaration);
                actual.map_or(Ok(()), |actual| records(ty, actual, path))
            }
            (ValueType::Sequence(ty), Value::Sequence(elements)) => {
                let mut elements = elements.iter().enumerate();
                elements.try_for_each(|(i, element)| self.value(ty, element, &format!("{path}[{i}]")))
            }
            (ValueType::Map { key: expected, value: ty }, Value::Map(entries)) => {
                for (key, value) in entries.iter() {
                    if matches!(key, MapKey::String(_)) != (*expected == DType::String) {
                        let (path, key) = (path.into(), key.to_string());
                        return Err(Mismatch::Key { path, expected: *expected, key });
                    }
                    self.value(ty, value, &format!("{path}[{key}]"))?;
                }
                Ok(())
            }
            (ValueType::Optional(ty), Value::Optional(value)) => {
                value.as_ref().map_or(Ok(()), |value| self.value(ty, value, path))
            }
            _ => Err(wrong_kind(ty, value, path)),
        }
    }

    fn fields(&mut self, ty: &StructType, values: &[(Arc<str>, Value)], path: &str) -> Result<(), Mismatch> {
        for field in ty.fields() {
            let Content::Type(ty) = &field.content else { continue };
            let Some((_, value)) = values.iter().find(|(name, _)| *name == field.name) else {
                return Err(Mismatch::MissingField { path: path.into(), field: field.name.clone() });
            };
            self.value(ty, value, &format!("{path}.{}", field.name))?;
        }
        let declared = |name: &Arc<str>| matches!(ty.field(name).map(|f| &f.content), Some(Content::Type(_)));
        match values.iter().find(|(name, _)| !declared(name)) {
            Some((field, _)) => Err(Mismatch::UnknownField { path: path.into(), field: field.clone() }),
            None => Ok(()),
        }
    }
}

fn records(expected: &Arc<StructType>, actual: &Arc<StructType>, path: &str) -> Result<(), Mismatch> {
    if Arc::ptr_eq(expected, actual) {
        return Ok(());
    }
    let difference = expected.difference(actual);
    if difference.is_none() && expected.type_id() == actual.type_id() {
        return Ok(());
    }
    Err(Mismatch::Layout {
        path: path.into(),
        expected: expected.to_string(),
        actual: actual.to_string(),
        difference: difference.map(Box::new),
    })
}

fn wrong_kind(ty: &ValueType, value: &Value, path: &str) -> Mismatch {
    let actual = match value {
        Value::Encoded(encoded) => format!("encoded value ({})", encoded.layout),
        value => value.kind().into(),
    };
    Mismatch::Kind { path: path.into(), expected: ty.to_string(), actual }
}
