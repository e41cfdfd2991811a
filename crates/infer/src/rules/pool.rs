//! Pooling: windows over the axes behind batch and channels.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("AffineGrid", affine_grid),
    ("AveragePool", pool),
    ("Col2Im", col2im),
    ("GridSample", grid_sample),
    ("LpPool", pool),
    ("MaxPool", pool),
    ("MaxRoiPool", max_roi_pool),
    ("MaxUnpool", max_unpool),
    ("RoiAlign", roi_align),
];

/// How windows lie along the spatial axes.
pub(super) struct Windows {
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    /// Before each axis, then behind each.
    pub(super) pads: Vec<i64>,
    /// `SAME_UPPER` or `SAME_LOWER`: as many outputs as strides fit, whatever the kernel.
    pub(super) is_same: bool,
    pub(super) ceil: bool,
}

pub(super) fn windows(cx: &Cx<'_>, spatial: usize) -> Windows {
    let list = |name: &str, count: usize, default: i64| match cx.opt_ints(name) {
        Some(values) if values.len() == count => Vec::from_iter(values.iter().copied()),
        _ => vec![default; count],
    };
    let auto = cx.string("auto_pad");
    Windows {
        strides: list("strides", spatial, 1),
        dilations: list("dilations", spatial, 1),
        pads: if auto == "VALID" { vec![0; 2 * spatial] } else { list("pads", 2 * spatial, 0) },
        is_same: auto.starts_with("SAME"),
        ceil: cx.int("ceil_mode", 0) != 0,
    }
}

impl Windows {
    /// The extent behind windows of `kernel` elements over an axis.
    pub(super) fn extent(&self, axis: usize, dim: &Dim, kernel: &Dim) -> Dim {
        let dim = dim.as_ref()?;
        let stride = Expr::number(self.strides[axis]);
        if self.is_same {
            return dim.ceil_div(&stride);
        }
        let spatial = self.strides.len();
        let reach = kernel.as_ref()?.minus(&Expr::number(1))?.times(&Expr::number(self.dilations[axis]))?;
        let padding = self.pads[axis].checked_add(self.pads[axis + spatial])?;
        let span = dim.plus(&Expr::number(padding))?.minus(&reach)?.minus(&Expr::number(1))?;
        let steps = match self.ceil {
            false => span.floor_div(&stride)?,
            true => {
                let steps = span.ceil_div(&stride)?;
                // A last window must begin before the padding behind the axis.
                let last = steps.times(&stride)?.minus(&dim.plus(&Expr::number(self.pads[axis]))?)?;
                match (last.least(), last.most()) {
                    (Some(least), _) if least >= 0 => steps.minus(&Expr::number(1))?,
                    (_, Some(most)) if most < 0 => steps,
                    // A last window of which all lies in the padding needs padding.
                    _ if self.pads[axis + spatial] == 0
                        && self.strides[axis] <= kernel.as_ref()?.as_number()? =>
                    {
                        steps
                    }
                    _ => return None,
                }
            }
        };
        steps.plus(&Expr::number(1))
    }
}

fn pool(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let Some(dims) = dims else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let spatial = cx.dims_of_rank(0, 2)?.len() - 2;
    let kernel = cx.opt_ints("kernel_shape").ok_or(Stop::Unknown)?;
    if kernel.len() != spatial {
        return Err(cx.refuse(0, format!("`kernel_shape` is of {} axes", kernel.len())));
    }
    let windows = windows(cx, spatial);
    let mut result = Vec::from(&dims[..2]);
    for (axis, dim) in dims[2..].iter().enumerate() {
        result.push(windows.extent(axis, dim, &Some(Expr::number(kernel[axis]))));
    }
    cx.set(0, dtype, Some(result.clone()));
    cx.set(1, DType::Int64, Some(result));
    Ok(())
}

fn max_unpool(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = Vec::from(cx.dims_of_rank(0, 2)?);
    if cx.has(2) {
        let dims = cx.ints(2);
        cx.set(0, dtype, dims);
        return Ok(());
    }
    let windows = windows(cx, dims.len() - 2);
    let kernel = cx.opt_ints("kernel_shape").filter(|it| it.len() == dims.len() - 2).ok_or(Stop::Unknown)?;
    let spatial = kernel.len();
    let grown = dims[2..].iter().enumerate().map(|(axis, dim)| {
        let less = windows.pads[axis] + windows.pads[axis + spatial] - kernel[axis];
        dim.as_ref()?
            .minus(&Expr::number(1))?
            .times(&Expr::number(windows.strides[axis]))?
            .minus(&Expr::number(less))
    });
    let result = dims[..2].iter().cloned().chain(grown).collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn max_roi_pool(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let (dims, rois) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 1)?);
    let pooled = cx.opt_ints("pooled_shape").ok_or(Stop::Unknown)?;
    let spatial = pooled.iter().map(|&it| Some(Expr::number(it)));
    let result = [rois[0].clone(), dims[1].clone()].into_iter().chain(spatial).collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn roi_align(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let (dims, rois) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(1, 1)?);
    let size = |name: &str| Some(Expr::number(cx.int(name, 1)));
    let result = vec![rois[0].clone(), dims[1].clone(), size("output_height"), size("output_width")];
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn grid_sample(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let (dims, grid) = (cx.dims_of_rank(0, 3)?, cx.dims_of_rank(1, 3)?);
    let result = dims[..2].iter().chain(&grid[1..grid.len() - 1]).cloned().collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn affine_grid(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let size = cx.ints(1).filter(|it| it.len() >= 3).ok_or(Stop::Unknown)?;
    let coordinates = Some(Expr::from(size.len() - 2));
    let result = size[..1].iter().chain(&size[2..]).cloned().chain([coordinates]).collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}

fn col2im(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let (dims, image) = (cx.dims_of_rank(0, 3)?, cx.ints(1).ok_or(Stop::Unknown)?);
    let block = cx.ints(2);
    let area =
        block.and_then(|block| Expr::product(block.iter().map(Option::as_ref).collect::<Option<Vec<_>>>()?));
    let channels = dims[1].as_ref().and_then(|dim| dim.exact_quotient(&area?));
    let result = [dims[0].clone(), channels].into_iter().chain(image).collect();
    cx.set(0, dtype, Some(result));
    Ok(())
}
