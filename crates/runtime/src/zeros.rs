//! Initial values of zeros, made only when they are asked for.

use heirloom_mem::{BytesMut, DType, Ledger, Shape, Tensor, element_count};
use heirloom_types::{Dim, TensorSpec, Value, ValueType};

use crate::{Session, StateError};

impl Session {
    /// A zero tensor for each persistent input; `extents` gives symbolic dimensions their extents, such as
    /// `[("batch", 1), ("past", 0)]`.
    ///
    /// # Errors
    /// When a dimension has no extent, or an input is no tensor of fixed-width elements.
    pub fn zeros(&self, extents: &[(&str, usize)]) -> Result<Vec<(String, Value)>, StateError> {
        let zero = |slot: crate::StateSlot| match &slot.ty {
            Some(ValueType::Tensor(spec)) if spec.dtype != DType::String => {
                let tensor = zeros(&slot.input, spec, extents)?;
                Ok((slot.input, Value::Tensor(tensor)))
            }
            ty => {
                let kind = ty.as_ref().map_or("value of undeclared type", ValueType::kind);
                Err(StateError::Unfit { name: slot.input, reason: format!("a {kind} has no zero value") })
            }
        };
        self.state_spec().into_iter().map(zero).collect()
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
