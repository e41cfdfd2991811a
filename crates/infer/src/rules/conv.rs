//! Convolutions.

use heirloom_mem::DType;

use super::pool::{Windows, windows};
use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::Dim;

pub(super) const RULES: &[Rule] = &[
    ("CausalConvWithState", causal),
    ("Conv", conv),
    ("ConvInteger", conv_integer),
    ("ConvTranspose", conv_transpose),
    ("DeformConv", conv),
    ("QLinearConv", q_linear_conv),
];

pub(super) const MICROSOFT: &[Rule] = &[("FusedConv", conv)];

fn conv(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    convolved(cx, 1, dtype)
}

/// Along the last axis, with the last rows but one window as the state.
fn causal(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = Vec::from(cx.dims_of_rank(0, 3)?);
    cx.set(0, dtype, Some(dims.clone()));
    let rows = cx.dims(1).ok().and_then(|w| w.last()?.as_ref()?.minus(&Expr::number(1)));
    cx.set(1, dtype, Some(vec![dims[0].clone(), dims[1].clone(), rows]));
    Ok(())
}

fn conv_integer(cx: &mut Cx<'_>) -> Outcome {
    convolved(cx, 1, DType::Int32)
}

fn q_linear_conv(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(7)?;
    convolved(cx, 3, dtype)
}

/// Extents of the kernel: of the weights, else as the attribute says.
fn kernel(cx: &Cx<'_>, weights: usize, spatial: usize) -> Vec<Dim> {
    let attribute = cx.opt_ints("kernel_shape").filter(|it| it.len() == spatial);
    let of_weights = cx.dims(weights).ok().filter(|it| it.len() == spatial + 2);
    let dim = |axis: usize| {
        let known = of_weights.and_then(|dims| dims[axis + 2].clone());
        known.or_else(|| attribute.map(|it| Expr::number(it[axis])))
    };
    (0..spatial).map(dim).collect()
}

fn convolved(cx: &mut Cx<'_>, weights: usize, dtype: DType) -> Outcome {
    // Input and weights have the same rank: one tells that of the other.
    let rank = cx.dims(0).or_else(|_| cx.dims(weights)).map(<[Dim]>::len).map_err(|_| Stop::Unknown)?;
    if rank < 2 {
        return Err(cx.refuse(0, "the operator takes batch, channels and spatial axes".into()));
    }
    if let (Ok(x), Ok(w)) = (cx.dims(0), cx.dims(weights)) {
        if w.len() != x.len() {
            return Err(cx.refuse(
                weights,
                format!("the input has {} axes, and the weights must have as many", x.len()),
            ));
        }
        let groups = Expr::number(cx.int("group", 1));
        if let (Some(channels), Some(own)) = (&x[1], w[1].as_ref().and_then(|it| it.times(&groups)))
            && channels.differs(&own)
        {
            return Err(cx.clash(
                "weights must be for as many channels (times groups) as there are",
                (0, 1),
                (weights, 1),
            ));
        }
    }
    let spatial = rank - 2;
    let (kernel, windows) = (kernel(cx, weights, spatial), windows(cx, spatial));
    let dim =
        |input: usize, axis: usize| cx.dims(input).ok().and_then(|dims| dims.get(axis).cloned().flatten());
    let mut result = vec![dim(0, 0), dim(weights, 0)];
    for (axis, kernel) in kernel.iter().enumerate() {
        result.push(windows.extent(axis, &dim(0, axis + 2), kernel));
    }
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn conv_transpose(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = Vec::from(cx.dims_of_rank(0, 2)?);
    let spatial = dims.len() - 2;
    let (kernel, windows) = (kernel(cx, 1, spatial), windows(cx, spatial));
    let channels = cx.dims(1).ok().and_then(|w| w.get(1)?.as_ref()?.times(&Expr::number(cx.int("group", 1))));
    let list = |name: &str| cx.opt_ints(name).filter(|it| it.len() == spatial);
    let (more, wanted) = (list("output_padding"), list("output_shape"));
    let mut result = vec![dims[0].clone(), channels];
    for axis in 0..spatial {
        let more = more.map_or(0, |it| it[axis]);
        result.push(match wanted {
            Some(wanted) => Some(Expr::number(wanted[axis])),
            None => grown(&windows, axis, &dims[axis + 2], &kernel[axis], more),
        });
    }
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn grown(windows: &Windows, axis: usize, dim: &Dim, kernel: &Dim, more: i64) -> Dim {
    let stride = Expr::number(windows.strides[axis]);
    if windows.is_same {
        return dim.as_ref()?.times(&stride);
    }
    let spatial = windows.strides.len();
    let reach = kernel.as_ref()?.minus(&Expr::number(1))?.times(&Expr::number(windows.dilations[axis]))?;
    let pads = windows.pads[axis].checked_add(windows.pads[axis + spatial])?;
    let last = dim.as_ref()?.minus(&Expr::number(1))?.times(&stride)?;
    last.plus(&reach)?.plus(&Expr::number(more.checked_add(1)?))?.minus(&Expr::number(pads))
}
