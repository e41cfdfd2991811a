//! What support vector machines have in common: their kernels.

use heirloom_runtime::{BuildCx, BuildError};

use crate::attributes::unsupported;

/// How alike two vectors are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Linear,
    Polynomial,
    Radial,
    Sigmoid,
}

/// A kernel with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Similarity {
    kind: Kind,
    gamma: f64,
    coefficient: f64,
    degree: f64,
}

impl Similarity {
    /// From `kernel_type` and `kernel_params`.
    pub(crate) fn read(cx: &BuildCx<'_>) -> Result<Similarity, BuildError> {
        let attributes = &cx.node.attributes;
        let kind = match attributes.opt_string("kernel_type")? {
            None | Some(b"LINEAR") => Kind::Linear,
            Some(b"POLY") => Kind::Polynomial,
            Some(b"RBF") => Kind::Radial,
            Some(b"SIGMOID") => Kind::Sigmoid,
            Some(other) => {
                return Err(unsupported(
                    "kernel_type",
                    String::from_utf8_lossy(other),
                    "there is no such kernel",
                ));
            }
        };
        let [gamma, coefficient, degree] = match attributes.opt_floats("kernel_params")?.unwrap_or(&[]) {
            [] => [0.0; 3],
            &[gamma, coefficient, degree] => [gamma, coefficient, degree].map(f64::from),
            other => return Err(unsupported("kernel_params", other.len(), "gamma, coef0 and degree are")),
        };
        Ok(Similarity { kind, gamma, coefficient, degree })
    }

    pub(crate) fn of(&self, a: &[f64], b: &[f64]) -> f64 {
        let pairs = || a.iter().zip(b);
        let dot = || pairs().map(|(a, b)| a * b).sum::<f64>();
        match self.kind {
            Kind::Linear => dot(),
            Kind::Polynomial => (self.gamma * dot() + self.coefficient).powf(self.degree),
            Kind::Sigmoid => (self.gamma * dot() + self.coefficient).tanh(),
            Kind::Radial => (-self.gamma * pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp(),
        }
    }
}

/// A list of FLOAT attributes, wide.
pub(crate) fn numbers(cx: &BuildCx<'_>, name: &str) -> Result<Vec<f64>, BuildError> {
    Ok(cx.node.attributes.opt_floats(name)?.unwrap_or(&[]).iter().map(|&v| f64::from(v)).collect())
}
