//! Initial values of zeros, made only when they are asked for.

use std::sync::Arc;

use heirloom_mem::{BytesMut, DType, Ledger, Shape, Tensor, element_count};
use heirloom_types::{Content, Dim, Kind, StructValue, TensorSpec, Value, ValueType};

use crate::{Session, StateError};

impl Session {
    /// A zero value for each persistent input: tensors of zeros, empty sequences, maps and optionals, and structs of such
    /// fields. `extents` gives symbolic dimensions their extents, such as
    /// `[("batch", 1), ("past", 0)]`.
    ///
    /// # Errors
    /// When a dimension has no extent, or an input holds strings or a struct of no declared type.
    pub fn zeros(&self, extents: &[(&str, usize)]) -> Result<Vec<(String, Value)>, StateError> {
        let zero = |slot: crate::StateSlot| match &slot.ty {
            Some(ty) => {
                let value = zero_value(&slot.input, ty, extents)?;
                Ok((slot.input, value))
            }
            None => Err(no_zero(&slot.input, "value of undeclared type")),
        };
        self.state_spec().into_iter().map(zero).collect()
    }
}

fn no_zero(name: &str, kind: &str) -> StateError {
    StateError::Unfit { name: name.into(), reason: format!("a {kind} has no zero value") }
}

fn zero_value(name: &str, ty: &ValueType, extents: &[(&str, usize)]) -> Result<Value, StateError> {
    match ty {
        ValueType::Tensor(spec) if spec.dtype != DType::String => {
            zeros(name, spec, extents).map(Value::Tensor)
        }
        ValueType::Sequence(_) => Ok(Value::Sequence(Arc::default())),
        ValueType::Map { .. } => Ok(Value::Map(Arc::default())),
        ValueType::Optional(_) => Ok(Value::Optional(None)),
        ValueType::Struct(ty) if matches!(ty.kind(), Kind::Structure(_)) => {
            let mut fields = Vec::new();
            for field in ty.fields() {
                if let Content::Type(ty) = &field.content {
                    fields.push((field.name.clone(), zero_value(name, ty, extents)?));
                }
            }
            Ok(Value::Struct(Arc::new(StructValue { fields })))
        }
        other => Err(no_zero(name, other.kind())),
    }
}

fn zeros(name: &str, spec: &TensorSpec, extents: &[(&str, usize)]) -> Result<Tensor, StateError> {
    let missing = |symbol: &str| StateError::Extent { name: name.into(), symbol: symbol.into() };
    let dims = spec.dims.as_ref().ok_or_else(|| missing("?"))?;
    let mut shape = Shape::new();
    for dim in dims {
        shape.push(match dim {
            Dim::Known(extent) => *extent,
            Dim::Unknown => return Err(missing("?")),
            Dim::Param(symbol) => {
                let given = extents.iter().find(|(name, _)| *name == &**symbol);
                given.ok_or_else(|| missing(symbol))?.1
            }
        });
    }
    let bytes =
        element_count(&shape).and_then(|n| spec.dtype.payload_bytes(n)).filter(|&n| n <= isize::MAX as usize);
    let too_large = || StateError::Unfit { name: name.into(), reason: format!("{shape:?} is too large") };
    let bytes = BytesMut::zeroed(bytes.ok_or_else(too_large)?, &Ledger::default()).freeze();
    Tensor::new(spec.dtype, &shape, bytes)
        .map_err(|error| StateError::Unfit { name: name.into(), reason: error.to_string() })
}
