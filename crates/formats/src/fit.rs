//! Scales and minima that lose least: the searches that the encoders share.
//!
//! Each search tries a few scales around the one that maps the extremes of the values to the extremes of the codes,
//! solves the least-squares problem for the codes that result, and keeps the best. Errors are unweighted squares.

/// `1 / x`, or 0 where x is 0 or so small that its inverse is infinite.
pub(crate) fn inverse(x: f32) -> f32 {
    let inverse = 1.0 / x;
    if inverse.is_finite() { inverse } else { 0.0 }
}

/// The value of largest magnitude, with its sign: the first where several are.
pub(crate) fn extreme(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |best: f32, &v| if v.abs() > best.abs() { v } else { best })
}

/// The smallest and the largest value.
pub(crate) fn range(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
}

/// The code nearest to `x`, within `lowest..=highest`, which are small.
pub(crate) fn nearest(x: f32, lowest: i32, highest: i32) -> i32 {
    rounded(x, lowest as f32, highest as f32) as i32
}

/// `x` within `lowest..=highest`, rounded to an integer, ties to even.
fn rounded(x: f32, lowest: f32, highest: f32) -> f32 {
    // At 1.5 · 2^23 one step of a float is 1, and unlike `round` an addition is one instruction everywhere.
    const STEP_ONE: f32 = 12_582_912.0;
    (x.max(lowest).min(highest) + STEP_ONE) - STEP_ONE
}

/// The sums of the terms of all values, in eight lanes, so that they can be computed side by side.
fn sums<const N: usize>(values: &[f32], term: impl Fn(f32) -> [f32; N]) -> [f32; N] {
    let mut lanes = [[0f32; 8]; N];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, &x) in chunk.iter().enumerate() {
            for (sums, term) in lanes.iter_mut().zip(term(x)) {
                sums[lane] += term;
            }
        }
    }
    for &x in rest {
        for (sums, term) in lanes.iter_mut().zip(term(x)) {
            sums[0] += term;
        }
    }
    lanes.map(|sums| sums.iter().sum())
}

/// The scale `s` for which `s * code`, with codes in `lowest..=highest` (`lowest` negative), is nearest to `values`.
/// The codes reach further down than up, so the extreme value becomes `lowest` and its sign the scale's, inverted.
pub(crate) fn symmetric(values: &[f32], lowest: i32, highest: i32) -> f32 {
    let extreme = extreme(values);
    if extreme == 0.0 {
        return 0.0;
    }
    let (low, high) = (lowest as f32, highest as f32);
    best_scale(values, extreme / low, |x| rounded(x, low, high))
}

/// The scale `s` for which `s * snap(value / s)` is nearest to `values`; `start` is a first guess, not 0. `snap`
/// rounds to the numbers that have codes.
pub(crate) fn best_scale(values: &[f32], start: f32, snap: impl Fn(f32) -> f32) -> f32 {
    let mut best = (f32::NEG_INFINITY, start);
    for step in -12..=12 {
        let inverse = inverse(start) * (1.0 + step as f32 * 0.02);
        let [xq, qq] = sums(values, |x| {
            let q = snap(x * inverse);
            [x * q, q * q]
        });
        // For fixed codes the best scale is xq / qq, and it takes xq² / qq off the squared error.
        let gain = xq * xq / qq;
        if gain > best.0 {
            best = (gain, xq / qq);
        }
    }
    best.1
}

/// The scale and the minimum, both at least 0, for which `scale * code - minimum`, with codes in `0..=highest`, is
/// nearest to `values`.
pub(crate) fn affine(values: &[f32], highest: i32) -> (f32, f32) {
    let (low, high) = range(values);
    let low = low.min(0.0);
    if high <= low {
        return (0.0, -low);
    }
    let start = high - low;
    let mut best = (f32::INFINITY, start / highest as f32, -low);
    for step in -10..=10 {
        let inverse = inverse(start) * (highest as f32 + step as f32 * 0.1);
        let n = values.len() as f32;
        let [q1, q2, x1, xq] = sums(values, |x| {
            let q = rounded((x - low) * inverse, 0.0, highest as f32);
            [q, q * q, x, x * q]
        });
        let determinant = n * q2 - q1 * q1;
        if determinant <= 0.0 {
            continue;
        }
        let mut scale = (n * xq - q1 * x1) / determinant;
        let mut minimum = -(q2 * x1 - q1 * xq) / determinant;
        if minimum < 0.0 {
            (scale, minimum) = (xq / q2, 0.0);
        }
        if scale > 0.0 {
            let error = affine_error(values, scale, minimum, highest);
            if error < best.0 {
                best = (error, scale, minimum);
            }
        }
    }
    (best.1, best.2)
}

/// The squared error of `scale * code - minimum` with the best codes in `0..=highest`.
fn affine_error(values: &[f32], scale: f32, minimum: f32, highest: i32) -> f32 {
    let inverse = inverse(scale);
    let [error] = sums(values, |x| {
        let q = rounded((x + minimum) * inverse, 0.0, highest as f32);
        let error = scale * q - minimum - x;
        [error * error]
    });
    error
}

/// The squared error of `scale * code` with the best codes in `lowest..=highest`.
fn symmetric_error(values: &[f32], scale: f32, lowest: i32, highest: i32) -> f32 {
    snap_error(values, scale, |x| rounded(x, lowest as f32, highest as f32))
}

/// The squared error of `scale * snap(value / scale)`.
pub(crate) fn snap_error(values: &[f32], scale: f32, snap: impl Fn(f32) -> f32) -> f32 {
    let inverse = inverse(scale);
    let [error] = sums(values, |x| {
        let error = scale * snap(x * inverse) - x;
        [error * error]
    });
    error
}

/// Codes `0..=limit` for the scales and minima of a super-block, given what one step of each means: the pair around
/// the nearest codes that loses least.
pub(crate) fn affine_codes(
    values: &[f32],
    (scale, minimum): (f32, f32),
    (scale_step, minimum_step): (f32, f32),
    limit: i32,
    highest: i32,
) -> (u8, u8) {
    let s0 = nearest(scale * inverse(scale_step), 0, limit);
    let m0 = nearest(minimum * inverse(minimum_step), 0, limit);
    let mut best = (f32::INFINITY, (0, 0));
    for s in (s0 - 1).max(0)..=(s0 + 1).min(limit) {
        for m in (m0 - 1).max(0)..=(m0 + 1).min(limit) {
            let error = affine_error(values, scale_step * s as f32, minimum_step * m as f32, highest);
            if error < best.0 {
                best = (error, (s as u8, m as u8));
            }
        }
    }
    best.1
}

/// The code in `lowest_scale..=highest_scale` for the scale of a sub-block, given what one step means: the one around
/// the nearest that loses least.
pub(crate) fn symmetric_code(
    values: &[f32],
    scale: f32,
    step: f32,
    (lowest_scale, highest_scale): (i32, i32),
    (lowest, highest): (i32, i32),
) -> i32 {
    let nearest = nearest(scale * inverse(step), lowest_scale, highest_scale);
    let mut best = (f32::INFINITY, nearest);
    for s in (nearest - 1).max(lowest_scale)..=(nearest + 1).min(highest_scale) {
        let error = symmetric_error(values, step * s as f32, lowest, highest);
        if error < best.0 {
            best = (error, s);
        }
    }
    best.1
}
