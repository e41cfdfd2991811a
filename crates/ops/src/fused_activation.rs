//! The activation that fused operators end with.

use heirloom_runtime::{BuildCx, BuildError};

use crate::attributes::unsupported;

/// An activation and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FusedActivation {
    None,
    Relu,
    Tanh,
    Sigmoid,
    LeakyRelu(f64),
    Clip(f64, f64),
    HardSigmoid(f64, f64),
}

impl FusedActivation {
    /// From `activation`, and the parameters that `parameters` gives by place.
    pub(crate) fn parse(cx: &BuildCx<'_>, parameters: &[f32]) -> Result<FusedActivation, BuildError> {
        let at = |index: usize, default: f64| parameters.get(index).map_or(default, |&v| f64::from(v));
        Ok(match cx.node.attributes.opt_string("activation")? {
            None | Some(b"") => FusedActivation::None,
            Some(b"Relu") => FusedActivation::Relu,
            Some(b"Tanh") => FusedActivation::Tanh,
            Some(b"Sigmoid") => FusedActivation::Sigmoid,
            Some(b"LeakyRelu") => FusedActivation::LeakyRelu(at(0, 0.01)),
            Some(b"Clip") => FusedActivation::Clip(at(0, f64::NEG_INFINITY), at(1, f64::INFINITY)),
            Some(b"HardSigmoid") => FusedActivation::HardSigmoid(at(0, 0.2), at(1, 0.5)),
            Some(other) => {
                let value = String::from_utf8_lossy(other);
                return Err(unsupported("activation", value, "there is no such fused activation"));
            }
        })
    }

    pub(crate) fn of(self, x: f64) -> f64 {
        match self {
            FusedActivation::None => x,
            FusedActivation::Relu => x.max(0.0),
            FusedActivation::Tanh => x.tanh(),
            FusedActivation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            FusedActivation::LeakyRelu(alpha) => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            FusedActivation::Clip(low, high) => x.max(low).min(high),
            FusedActivation::HardSigmoid(alpha, beta) => (alpha * x + beta).clamp(0.0, 1.0),
        }
    }
}
