//! How far two results are apart, and assertions that say where.

use std::fmt::Debug;

/// Cosine of the angle between two vectors, in f64; 1 for two zero vectors, 0 where only one is zero.
///
/// # Panics
/// Where the lengths differ.
#[must_use]
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "two vectors of different lengths have no cosine");
    let (mut dot, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (&x, &y) in a.iter().zip(b) {
        let (x, y) = (f64::from(x), f64::from(y));
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    match (aa == 0.0, bb == 0.0) {
        (true, true) => 1.0,
        (false, false) => dot / (aa.sqrt() * bb.sqrt()),
        _ => 0.0,
    }
}

/// How many representable f32 lie between two numbers; both zeros are one number. `None` where one is NaN.
#[must_use]
pub fn ulp_distance(a: f32, b: f32) -> Option<u32> {
    // Maps the floats to integers in their own order.
    let rank = |x: f32| {
        let magnitude = i64::from(x.to_bits() & 0x7fff_ffff);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    if a.is_nan() || b.is_nan() {
        return None;
    }
    u32::try_from((rank(a) - rank(b)).unsigned_abs()).ok()
}

/// What [`assert_close`] allows: |actual − expected| ≤ `absolute` + `relative` · |expected|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Allowed whatever the expected value is.
    pub absolute: f64,
    /// Allowed in proportion to the expected value.
    pub relative: f64,
}

/// Asserts that each element is within the tolerance; two NaN or two equal infinities count as equal.
///
/// # Panics
/// Where lengths differ or elements are too far apart; the message names the worst and counts the others.
#[track_caller]
pub fn assert_close(actual: &[f32], expected: &[f32], tolerance: Tolerance) {
    assert_eq!(actual.len(), expected.len(), "lengths differ");
    let excess = |(&a, &e): (&f32, &f32)| {
        if a == e || (a.is_nan() && e.is_nan()) {
            return 0.0;
        }
        let allowed = tolerance.absolute + tolerance.relative * f64::from(e).abs();
        let error = (f64::from(a) - f64::from(e)).abs();
        if error <= allowed { 0.0 } else { (error - allowed).max(f64::MIN_POSITIVE) }
    };
    let far: Vec<(usize, f64)> =
        actual.iter().zip(expected).map(excess).enumerate().filter(|(_, excess)| *excess != 0.0).collect();
    if let Some(&(worst, _)) = far.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        panic!(
            "{} of {} elements are out of tolerance ({tolerance:?}); the worst is [{worst}]: {} instead of {}",
            far.len(),
            actual.len(),
            actual[worst],
            expected[worst],
        );
    }
}

/// Asserts equality and, where it fails, shows the first element that differs with its neighbours.
///
/// # Panics
/// Where lengths or elements differ.
#[track_caller]
pub fn assert_same<T: PartialEq + Debug>(actual: &[T], expected: &[T]) {
    if let Some(at) = actual.iter().zip(expected).position(|(a, e)| a != e) {
        let around = at.saturating_sub(2)..(at + 6).min(actual.len().min(expected.len()));
        panic!(
            "element [{at}] of {} differs: {:?} instead of {:?}; {around:?}: {:?} instead of {:?}",
            actual.len(),
            actual[at],
            expected[at],
            &actual[around.clone()],
            &expected[around.clone()],
        );
    }
    assert_eq!(actual.len(), expected.len(), "lengths differ, the common part does not");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_of_parallel_orthogonal_and_zero_vectors() {
        assert!((cosine(&[1.0, 2.0], &[2.0, 4.0]) - 1.0).abs() < 1e-12);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 1.0]), 0.0);
        assert_eq!(cosine(&[0.0], &[0.0]), 1.0);
        assert_eq!(cosine(&[0.0], &[1.0]), 0.0);
    }

    #[test]
    fn ulp_distance_counts_over_zero_and_refuses_nan() {
        assert_eq!(ulp_distance(1.0, 1.0 + f32::EPSILON), Some(1));
        assert_eq!(ulp_distance(0.0, -0.0), Some(0));
        assert_eq!(ulp_distance(f32::from_bits(1), -f32::from_bits(1)), Some(2));
        assert_eq!(ulp_distance(f32::NAN, 1.0), None);
    }

    #[test]
    fn close_vectors_pass() {
        let tolerance = Tolerance { absolute: 0.0, relative: 0.1 };
        assert_close(&[1.05, f32::INFINITY, f32::NAN], &[1.0, f32::INFINITY, f32::NAN], tolerance);
    }

    #[test]
    #[should_panic(expected = "1 of 3 elements are out of tolerance")]
    fn a_far_element_fails() {
        assert_close(&[1.0, 9.0, 3.0], &[1.0, 2.0, 3.0], Tolerance { absolute: 0.5, relative: 0.0 });
    }

    #[test]
    #[should_panic(expected = "[0]: NaN instead of 1")]
    fn nan_is_never_close_to_a_number() {
        assert_close(&[f32::NAN], &[1.0], Tolerance { absolute: 9.0, relative: 9.0 });
    }

    #[test]
    #[should_panic(
        expected = "element [1] of 3 differs: 5 instead of 2; 0..3: [1, 5, 3] instead of [1, 2, 3]"
    )]
    fn a_different_element_is_shown_with_its_neighbours() {
        assert_same(&[1, 5, 3], &[1, 2, 3]);
    }
}
