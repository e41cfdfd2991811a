//! `SimplifiedLayerNormalization`, which ONNX Runtime's exporters use in the standard's domain:
//! `x / sqrt(mean(x²) + epsilon) * scale`, the mean over all axes from `axis` on.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SimplifiedLayerNormalization",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Simplified {
    axis: i64,
    epsilon: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "epsilon", "stash_type"])?;
    let attributes = &cx.node.attributes;
    match attributes.int_or("stash_type", 1)? {
        1 => {}
        other => return Err(unsupported("stash_type", other, "the mean is computed in FLOAT, 1")),
    }
    Ok(Box::new(Simplified {
        axis: attributes.int_or("axis", -1)?,
        epsilon: f64::from(attributes.float_or("epsilon", 1e-5)?),
    }))
}

impl Kernel for Simplified {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((_, shape, x), (dtype, scale_shape, scale)) = (input(cx, 0)?, input(cx, 1)?);
        let axis = heirloom_runtime::normalize_axis(self.axis, shape.len())?;
        let count: usize = shape[axis..].iter().product();
        if scale.len() != count {
            return Err(misfit("the scale has the normalized axes", &[&shape, &scale_shape]));
        }
        let (mut out, mut factors) = (Vec::with_capacity(x.len()), Vec::new());
        for row in x.chunks_exact(count.max(1)) {
            let square = row.iter().map(|v| v * v).sum::<f64>() / count as f64;
            let factor = 1.0 / (square + self.epsilon).sqrt();
            factors.push(factor);
            out.extend(row.iter().zip(&scale).map(|(v, scale)| v * factor * scale));
        }
        let result = written(cx, dtype, &shape, &out)?;
        cx.set(0, result);
        if cx.output_count() > 1 && cx.wants(1) {
            let kept: Shape =
                shape.iter().enumerate().map(|(at, &d)| if at < axis { d } else { 1 }).collect();
            let factors = written(cx, DType::Float, &kept, &factors)?;
            cx.set(1, factors);
        }
        Ok(())
    }
}
