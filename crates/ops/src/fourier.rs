//! The discrete Fourier transform.

/// A complex number.
pub(crate) type Complex = (f64, f64);

/// The transform of a signal; `inverse` takes the other sign and divides by the length.
///
/// Lengths that are powers of two are halved again and again; others are computed from the definition.
pub(crate) fn transform(x: &[Complex], inverse: bool) -> Vec<Complex> {
    let n = x.len();
    let sign = if inverse { 1.0 } else { -1.0 };
    let angle = |k: usize| sign * std::f64::consts::TAU * k as f64 / n as f64;
    let turns: Vec<Complex> = (0..n).map(|k| (angle(k).cos(), angle(k).sin())).collect();
    let mut out = halved(x, 0, 1, n, &turns);
    if inverse {
        out.iter_mut().for_each(|v| *v = (v.0 / n as f64, v.1 / n as f64));
    }
    out
}

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The transform of the `n` elements from `first` on that lie `step` apart.
fn halved(x: &[Complex], first: usize, step: usize, n: usize, turns: &[Complex]) -> Vec<Complex> {
    if n <= 1 || !n.is_multiple_of(2) {
        return (0..n)
            .map(|k| {
                (0..n).fold((0.0, 0.0), |sum, i| {
                    let v = times(x[first + i * step], turns[i * k % n * step]);
                    (sum.0 + v.0, sum.1 + v.1)
                })
            })
            .collect();
    }
    let even = halved(x, first, 2 * step, n / 2, turns);
    let odd = halved(x, first + step, 2 * step, n / 2, turns);
    let mut out = vec![(0.0, 0.0); n];
    for k in 0..n / 2 {
        let v = times(odd[k], turns[k * step]);
        out[k] = (even[k].0 + v.0, even[k].1 + v.1);
        out[k + n / 2] = (even[k].0 - v.0, even[k].1 - v.1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::transform;

    #[test]
    fn the_inverse_undoes_the_transform_of_any_length() {
        for n in [1, 2, 5, 8, 12] {
            let x: Vec<_> = (0..n).map(|i| (f64::from(i) + 0.5, f64::from(i * i) * 0.25)).collect();
            let back = transform(&transform(&x, false), true);
            for (a, b) in x.iter().zip(&back) {
                assert!((a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9, "{n}: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn four_elements_are_transformed_as_on_paper() {
        let y = transform(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0)], false);
        let expected = [(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0), (-2.0, -2.0)];
        for (a, b) in y.iter().zip(expected) {
            assert!((a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12, "{a:?} {b:?}");
        }
    }
}
