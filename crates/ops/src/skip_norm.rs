//! Sums of an input and a skipped one, normalized over the last axis.

use heirloom_mem::DType;
use heirloom_runtime::{KernelError, RunCx};

use crate::reals::{input, misfit, opt_input, written};
use crate::spread;

/// The inputs that the two operators have at different places.
pub(crate) struct Places {
    pub(crate) beta: Option<usize>,
    pub(crate) bias: usize,
}

/// `(sum - mean) / deviation * gamma + beta` with the mean taken off, or without, as `centred` says. Outputs: the result,
/// mean, inverse deviation, sum.
pub(crate) fn run(
    cx: &mut RunCx<'_>,
    places: &Places,
    epsilon: f64,
    centred: bool,
) -> Result<(), KernelError> {
    let (dtype, shape, mut x) = input(cx, 0)?;
    let ((_, skip_shape, skip), (_, _, gamma)) = (input(cx, 1)?, input(cx, 2)?);
    let width = shape.last().copied().unwrap_or(1).max(1);
    if skip.is_empty()
        || !x.len().is_multiple_of(skip.len())
        || !shape.ends_with(&skip_shape[skip_shape.len().min(1)..])
    {
        return Err(misfit(
            "the skipped input is as large, or one for the whole batch",
            &[&shape, &skip_shape],
        ));
    }
    spread::pieces(cx.cancel(), &mut x, |from, x| {
        x.iter_mut().enumerate().for_each(|(at, v)| *v += skip[(from + at) % skip.len()]);
    })?;
    let row = |values: Option<(DType, heirloom_mem::Shape, Vec<f64>)>| match values {
        Some((_, shape, _)) if *shape != [width] => {
            Err(misfit("gamma, beta and bias have an element for each of the last axis", &[&shape]))
        }
        other => Ok(other.map(|o| o.2)),
    };
    if gamma.len() != width {
        return Err(misfit("gamma has an element for each of the last axis", &[&shape, &[gamma.len()]]));
    }
    let beta = match places.beta {
        Some(index) => row(opt_input(cx, index)?)?,
        None => None,
    };
    if let Some(bias) = row(opt_input(cx, places.bias)?)? {
        spread::pieces(cx.cancel(), &mut x, |from, x| {
            x.iter_mut().enumerate().for_each(|(at, v)| *v += bias[(from + at) % width]);
        })?;
    }
    let (mut out, mut means, mut factors) = (Vec::with_capacity(x.len()), Vec::new(), Vec::new());
    let mut watch = cx.cancel().watch();
    for row in x.chunks_exact(width) {
        watch.pass(2 * width)?;
        let mean = if centred { row.iter().sum::<f64>() / width as f64 } else { 0.0 };
        let square = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / width as f64;
        let factor = 1.0 / (square + epsilon).sqrt();
        means.push(mean);
        factors.push(factor);
        out.extend(
            row.iter()
                .enumerate()
                .map(|(at, v)| (v - mean) * factor * gamma[at] + beta.as_ref().map_or(0.0, |b| b[at])),
        );
    }
    let mut kept = shape.clone();
    if let Some(last) = kept.last_mut() {
        *last = 1;
    }
    for (index, dtype, shape, values) in [
        (0, dtype, &shape, &out),
        (1, DType::Float, &kept, &means),
        (2, DType::Float, &kept, &factors),
        (3, dtype, &shape, &x),
    ] {
        if index < cx.output_count() && cx.wants(index) {
            let out = written(cx, dtype, shape, values)?;
            cx.set(index, out);
        }
    }
    Ok(())
}
