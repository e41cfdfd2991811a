//! The error function, `2 / √π · ∫₀ˣ exp(−t²) dt`.

/// Coefficients, by rising power, of `erf(x) / x` in `x²` for |x| ≤ 1: a Chebyshev fit.
#[allow(clippy::approx_constant, clippy::excessive_precision)] // A coefficient of the fit, as it came out.
const NEAR: [f32; 7] = [
    1.128_379_1,
    -0.376_126_26,
    0.112_835_97,
    -0.026_854_329,
    0.005_189_312_3,
    -0.000_801_885_5,
    0.000_078_824_975,
];

/// Coefficients, by rising power, of `ln(1 − erf(x))` for 1 ≤ x ≤ 4: a Chebyshev fit.
const FAR: [f32; 9] = [
    0.000_303_212_96,
    -1.130_166_6,
    -0.631_937_1,
    -0.109_978_24,
    0.026_364_714,
    -0.004_740_222_4,
    0.000_592_769_5,
    -0.000_045_590_62,
    0.000_001_614_061_6,
];

fn polynomial<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// Within 2e-7 of the value, relative.
pub(crate) fn float(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude <= 1.0 || x.is_nan() {
        return x * polynomial(&NEAR, x * x);
    }
    // Beyond 4 it is 1 in this precision.
    (1.0 - polynomial(&FAR, magnitude.min(4.0)).exp()).copysign(x)
}

/// Within 1e-14 of the value.
pub(crate) fn double(x: f64) -> f64 {
    let magnitude = x.abs();
    if magnitude.is_nan() {
        return x;
    }
    let square = magnitude * magnitude;
    let scale = 2.0 / std::f64::consts::PI.sqrt() * (-square).exp();
    if magnitude < 2.5 {
        // 2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (2n+1)!!
        let (mut term, mut sum) = (magnitude, magnitude);
        for n in 1..80 {
            term *= 2.0 * square / f64::from(2 * n + 1);
            sum += term;
        }
        return (scale * sum).copysign(x);
    }
    // erfc(x) = e^(−x²) / √π · 1 / (x + (1/2) / (x + 1 / (x + (3/2) / (x + …))))
    let fraction = (1..60).rev().fold(magnitude, |below, n| magnitude + 0.5 * f64::from(n) / below);
    (1.0 - scale / 2.0 / fraction).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::{double, float};

    /// From `math.erf` of Python.
    const VALUES: [(f64, f64); 9] = [
        (0.0, 0.0),
        (1e-3, 0.001_128_378_790_969_236_4),
        (0.5, 0.520_499_877_813_046_5),
        (1.0, 0.842_700_792_949_714_9),
        (1.5, 0.966_105_146_475_310_8),
        (2.4, 0.999_311_486_103_355),
        (2.6, 0.999_763_965_583_470_7),
        (3.9, 0.999_999_965_207_751),
        (6.0, 1.0),
    ];

    #[test]
    fn values_are_those_of_the_definition_on_both_sides() {
        for (x, y) in VALUES {
            for (x, y) in [(x, y), (-x, -y)] {
                assert!((double(x) - y).abs() < 1e-14, "{x}: {}", double(x));
                assert!(
                    (f64::from(float(x as f32)) - y).abs() <= 2.5e-7 * y.abs(),
                    "{x}: {}",
                    float(x as f32)
                );
            }
        }
        assert!(float(f32::NAN).is_nan() && double(f64::NAN).is_nan());
        assert_eq!((float(f32::INFINITY), float(f32::NEG_INFINITY)), (1.0, -1.0));
    }
}
