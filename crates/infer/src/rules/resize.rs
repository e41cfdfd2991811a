//! Resizing.

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Elem, TensorFact};

pub(super) const RULES: &[Rule] = &[("Resize", resize), ("Upsample", upsample)];

/// The extent times a scale, rounded down.
fn scaled(dim: &Dim, scale: f64) -> Dim {
    let dim = dim.as_ref()?;
    if let Some(number) = dim.as_number() {
        // ONNX computes in single precision.
        return Some(Expr::number((number as f32 * scale as f32).floor() as i64));
    }
    if scale.fract() == 0.0 && scale > 0.0 {
        return dim.times(&Expr::number(scale as i64));
    }
    let inverse = 1.0 / scale;
    if inverse.fract() == 0.0 && inverse > 0.0 {
        return dim.floor_div(&Expr::number(inverse as i64));
    }
    None
}

fn scales(cx: &Cx<'_>, input: usize) -> Option<Vec<Option<f64>>> {
    if let Some(heirloom_graph::AttrValue::Floats(values)) = cx.attr("scales") {
        return Some(values.iter().map(|&value| Some(f64::from(value))).collect());
    }
    let real = |elem: &Option<Elem>| match elem {
        Some(Elem::Real(value)) => Some(*value),
        _ => None,
    };
    cx.elems(input).map(|elems| elems.iter().map(real).collect()).filter(|it: &Vec<_>| !it.is_empty())
}

fn upsample(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = dims.ok_or(Stop::Unknown)?;
    let scales = scales(cx, 1).filter(|it| it.len() == dims.len()).unwrap_or_else(|| vec![None; dims.len()]);
    let result = dims.iter().zip(scales).map(|(dim, scale)| scaled(dim, scale?)).collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn resize(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let mut result = dims.ok_or(Stop::Unknown)?;
    let axes = match cx.opt_ints("axes") {
        Some(axes) => cx.axes(axes, result.len())?,
        None => (0..result.len()).collect(),
    };
    let at = if cx.opset < 11 { 1 } else { 2 };
    let scales = scales(cx, at).filter(|it| it.len() == axes.len());
    let sizes = cx.ints(3).filter(|it| it.len() == axes.len());
    let keeps_ratio = matches!(cx.string("keep_aspect_ratio_policy"), "not_larger" | "not_smaller");
    for (index, &axis) in axes.iter().enumerate() {
        result[axis] = match (&scales, &sizes) {
            (Some(scales), _) => scales[index].and_then(|scale| scaled(&result[axis], scale)),
            (None, Some(sizes)) if !keeps_ratio => sizes[index].clone(),
            _ => None,
        };
    }
    cx.set(0, dtype, Some(result));
    Ok(())
}
