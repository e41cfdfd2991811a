//! Payloads of tensors and encoded values: validated, left where they are.

use std::sync::Arc;

use heirloom_mem::{DType, Shape};
use heirloom_proto::external::ExternalError;
use heirloom_proto::{EncodedValueProto, Payload, TensorProto};
use heirloom_types::{Constant, EncodedValue, Faults, TensorType, constant_from_proto};

use crate::import::Context;
use crate::{Problem, Unavailable};

/// Why a constant could not be had.
pub(crate) enum Failure {
    /// Its file is not at hand, which may be all right.
    Missing(Arc<Unavailable>),
    Problem(Problem),
    Types(Faults),
}

/// A tensor's data.
pub(crate) fn tensor(proto: &TensorProto, context: &Context<'_>) -> Result<Constant, Failure> {
    reachable(proto.name(), proto.payload(), context, || tensor_type(proto))?;
    constant_from_proto(proto, Some(context.resolver))
        .map_err(|error| Failure::Problem(Problem::Tensor(error)))
}

/// An encoded value.
pub(crate) fn encoded(proto: &EncodedValueProto, context: &Context<'_>) -> Result<EncodedValue, Failure> {
    reachable(proto.name(), proto.payload(), context, || {
        let ty = context.catalogue.value_type(proto.logical_type()?, "").ok()?;
        ty.as_tensor()?.to_concrete()
    })?;
    EncodedValue::load(proto, context.catalogue, context.resolver).map_err(Failure::Types)
}

/// Whether the file of a payload can be had.
fn reachable(
    name: &str,
    payload: Result<Payload<'_>, ExternalError>,
    context: &Context<'_>,
    logical: impl FnOnce() -> Option<TensorType>,
) -> Result<(), Failure> {
    let broken = |error: ExternalError| {
        Failure::Problem(Problem::External { name: name.into(), reason: error.to_string() })
    };
    let Payload::External(place) = payload.map_err(broken)? else { return Ok(()) };
    match context.resolver.path(&place.location) {
        Ok(_) => Ok(()),
        Err(error) => {
            let may_wait = match &error {
                ExternalError::NoBaseDirectory { .. } => true,
                ExternalError::Open { .. } => context.defer_missing,
                _ => false,
            };
            if !may_wait {
                return Err(broken(error));
            }
            let (location, reason) = (place.location, error.to_string());
            Err(Failure::Missing(Arc::new(Unavailable {
                name: name.into(),
                location,
                reason,
                logical: logical(),
            })))
        }
    }
}

fn tensor_type(proto: &TensorProto) -> Option<TensorType> {
    let dtype = DType::from_onnx(proto.data_type())?;
    let shape = proto.dims().iter().map(|&extent| usize::try_from(extent).ok()).collect::<Option<Shape>>()?;
    Some(TensorType { dtype, shape })
}
