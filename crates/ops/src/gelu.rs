//! Gelu and its approximations.

/// `x * normal distribution(x)`
pub(crate) fn exact(x: f64) -> f64 {
    0.5 * x * (1.0 + crate::erf::double(x / std::f64::consts::SQRT_2))
}

/// The approximation by tanh.
pub(crate) fn by_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
}
