//! Signals: transforms and windows.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("BlackmanWindow", window),
    ("DFT", dft),
    ("HammingWindow", window),
    ("HannWindow", window),
    ("MelWeightMatrix", mel),
    ("STFT", stft),
];

fn first(cx: &Cx<'_>, input: usize) -> Dim {
    cx.ints(input)?.first()?.clone()
}

fn window(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("output_datatype").unwrap_or(DType::Float);
    let size = first(cx, 0);
    cx.set(0, dtype, Some(vec![size]));
    Ok(())
}

fn mel(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype_attr("output_datatype").unwrap_or(DType::Float);
    let bins = first(cx, 1).and_then(|length| length.floor_div(&Expr::number(2))?.plus(&Expr::number(1)));
    let mels = first(cx, 0);
    cx.set(0, dtype, Some(vec![bins, mels]));
    Ok(())
}

/// Half of the bins and the one in the middle.
fn one_sided(length: &Expr) -> Dim {
    length.floor_div(&Expr::number(2))?.plus(&Expr::number(1))
}

fn dft(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let mut dims = dims.ok_or(Stop::Unknown)?;
    let axis = match cx.opset {
        ..20 => Some(cx.int("axis", 1)),
        _ if cx.has(2) => first(cx, 2).and_then(|it| it.as_number()),
        _ => Some(-2),
    };
    let Some(axis) = axis else {
        let rank = dims.len();
        cx.set(0, dtype, Some(vec![None; rank]));
        return Ok(());
    };
    let axis = cx.axis(axis, dims.len())?;
    if cx.has(1) {
        dims[axis] = first(cx, 1);
    }
    let (is_half, is_inverse) = (cx.int("onesided", 0) != 0, cx.int("inverse", 0) != 0);
    if is_half && !is_inverse {
        dims[axis] = dims[axis].as_ref().and_then(one_sided);
    } else if is_half && !cx.has(1) {
        // The bins of half a spectrum give an even number of samples.
        dims[axis] = dims[axis].as_ref().and_then(|it| it.minus(&Expr::number(1))?.times(&Expr::number(2)));
    }
    if let Some(last) = dims.last_mut() {
        *last = Some(Expr::number(if is_half && is_inverse { 1 } else { 2 }));
    }
    cx.set(0, dtype, Some(dims));
    Ok(())
}

fn stft(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = cx.dims_of_rank(0, 2)?;
    let step = first(cx, 1);
    let of_window = cx.dims(2).ok().and_then(|dims| dims.first()?.clone());
    let length = if cx.has(3) { first(cx, 3) } else { None }.or(of_window);
    let frames = dims[1]
        .as_ref()
        .and_then(|signal| signal.minus(length.as_ref()?)?.floor_div(step.as_ref()?)?.plus(&Expr::number(1)));
    let bins = match cx.int("onesided", 1) {
        0 => length,
        _ => length.as_ref().and_then(one_sided),
    };
    cx.set(0, dtype, Some(vec![dims[0].clone(), frames, bins, Some(Expr::number(2))]));
    Ok(())
}
