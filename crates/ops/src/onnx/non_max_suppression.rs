//! [`NonMaxSuppression`](https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html): the boxes of each class that
//! overlap no better one too much.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers::opt_list;
use crate::reals::{input, misfit, opt_input};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "NonMaxSuppression",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct NonMaxSuppression {
    /// Whether a box is its middle and its extents, not two corners.
    centred: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["center_point_box"])?;
    let centred = match cx.node.attributes.int_or("center_point_box", 0)? {
        0 => false,
        1 => true,
        other => return Err(unsupported("center_point_box", other, "0 and 1 are")),
    };
    Ok(Box::new(NonMaxSuppression { centred }))
}

impl NonMaxSuppression {
    /// Lower and upper corner.
    fn corners(&self, b: &[f64]) -> [f64; 4] {
        match self.centred {
            true => [b[0] - b[2] / 2.0, b[1] - b[3] / 2.0, b[0] + b[2] / 2.0, b[1] + b[3] / 2.0],
            false => [b[0].min(b[2]), b[1].min(b[3]), b[0].max(b[2]), b[1].max(b[3])],
        }
    }
}

/// The shared area of two boxes over the area of both together.
fn overlap(a: [f64; 4], b: [f64; 4]) -> f64 {
    let side = |axis: usize| (a[axis + 2].min(b[axis + 2]) - a[axis].max(b[axis])).max(0.0);
    let area = |b: [f64; 4]| (b[2] - b[0]) * (b[3] - b[1]);
    let shared = side(0) * side(1);
    let all = area(a) + area(b) - shared;
    if all > 0.0 { shared / all } else { 0.0 }
}

impl Kernel for NonMaxSuppression {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((_, box_shape, boxes), (_, score_shape, scores)) = (input(cx, 0)?, input(cx, 1)?);
        let fault = || {
            misfit("boxes are [batch, boxes, 4], scores [batch, classes, boxes]", &[&box_shape, &score_shape])
        };
        let (&[batch, count, 4], &[score_batch, classes, score_count]) = (&*box_shape, &*score_shape) else {
            return Err(fault());
        };
        if batch != score_batch || count != score_count {
            return Err(fault());
        }
        let first = |list: Option<(_, _, Vec<f64>)>| {
            list.and_then(|(_, _, v): (DType, heirloom_mem::Shape, _)| v.first().copied())
        };
        let most = opt_list(cx, 2)?.and_then(|l| l.first().copied()).unwrap_or(0).max(0) as usize;
        let most_overlap = first(opt_input(cx, 3)?).unwrap_or(0.0);
        let least_score = first(opt_input(cx, 4)?);
        let mut chosen: Vec<[i64; 3]> = Vec::new();
        for b in 0..batch {
            let boxes: Vec<[f64; 4]> =
                boxes[b * count * 4..][..count * 4].chunks_exact(4).map(|b| self.corners(b)).collect();
            for class in 0..classes {
                cx.cancel().check()?;
                let scores = &scores[(b * classes + class) * count..][..count];
                let mut order: Vec<usize> =
                    (0..count).filter(|&i| least_score.is_none_or(|least| scores[i] > least)).collect();
                order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]));
                let mut kept: Vec<usize> = Vec::new();
                for i in order {
                    if kept.len() >= most {
                        break;
                    }
                    if kept.iter().all(|&k| overlap(boxes[i], boxes[k]) <= most_overlap) {
                        kept.push(i);
                    }
                }
                chosen.extend(kept.iter().map(|&i| [b as i64, class as i64, i as i64]));
            }
        }
        let mut out = cx.alloc(DType::Int64, &[chosen.len(), 3])?;
        out.elements_mut::<i64>().iter_mut().zip(chosen.iter().flatten()).for_each(|(o, &v)| *o = v);
        cx.set(0, out.freeze());
        Ok(())
    }
}
