//! Normalization of rows.
#![allow(unsafe_code)]

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::disjoint::DisjointMut;
use crate::lanes::{self, for_level};
use heirloom_simd::Isa;

/// ONNX `RMSNormalization` (opset 23 on) of FLOAT over the last axis:
/// `x / sqrt(mean(x²) + epsilon) * scale`.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RMSNormalization",
    versions: (23, i64::MAX),
    rank: 10,
    accepts,
    build: |cx| Ok(Box::new(RmsNorm::new(cx)?)),
};

fn accepts(cx: &BuildCx<'_>) -> bool {
    let attributes = &cx.node.attributes;
    let float =
        |i: usize| cx.inputs.get(i).and_then(Option::as_ref).and_then(|f| f.dtype) == Some(DType::Float);
    cx.plain_inputs()
        && attributes.int_or("axis", -1).is_ok_and(|a| a == -1)
        && attributes.int_or("stash_type", 1).is_ok_and(|t| t == 1)
        && float(1)
}

struct RmsNorm {
    epsilon: f32,
    isa: Isa,
}

impl RmsNorm {
    fn new(cx: &BuildCx<'_>) -> Result<RmsNorm, BuildError> {
        Ok(RmsNorm { epsilon: cx.node.attributes.float_or("epsilon", 1e-5)?, isa: lanes::selected()? })
    }
}

/// Rows per task.
const ROWS: usize = 16;

impl Kernel for RmsNorm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let width = x.shape().last().copied().unwrap_or(1);
        let scale = cx.dense(1)?;
        if scale.shape() != [width] {
            return Err(KernelError::Shape {
                what: "the scale has one element for each of the last axis",
                shapes: [&x, &scale].map(|t| heirloom_mem::Shape::from_slice(t.shape())).into(),
            });
        }
        let (x_rows, scale) = (x.as_slice::<f32>()?, scale.as_slice::<f32>()?);
        let mut out = cx.alloc(DType::Float, x.shape())?;
        let to = DisjointMut::new(out.elements_mut::<f32>());
        let (rows, cancel) = (x_rows.len() / width.max(1), cx.cancel());
        cx.team().run(rows.div_ceil(ROWS), &|task| {
            let mut watch = cancel.watch();
            if cancel.is_cancelled() {
                return;
            }
            for row in task * ROWS..((task + 1) * ROWS).min(rows) {
                if watch.pass(width).is_err() {
                    return;
                }
                let range = row * width..(row + 1) * width;
                // SAFETY: each row is written by one task.
                let to = unsafe { to.part(range.clone()) };
                rms_norm(self.isa, &x_rows[range], scale, self.epsilon, to);
            }
        });
        cancel.check()?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

for_level! {
    fn rms_norm(s, x: &[f32], scale: &[f32], epsilon: f32, out: &mut [f32]) {
        let n = x.len();
        let whole = n / S::N * S::N;
        let mut sums = [s.splat(0.0); 4];
        let step = 4 * S::N;
        let fours = n / step * step;
        for at in (0..fours).step_by(step) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let v = s.load(&x[at + i * S::N..]);
                *sum = s.fma(v, v, *sum);
            }
        }
        for at in (fours..whole).step_by(S::N) {
            let v = s.load(&x[at..]);
            sums[0] = s.fma(v, v, sums[0]);
        }
        let mut sum = s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])));
        for v in &x[whole..] {
            sum += v * v;
        }
        let factor = 1.0 / (sum / n as f32 + epsilon).sqrt();
        for at in (0..whole).step_by(S::N) {
            let v = s.mul(s.mul(s.load(&x[at..]), s.splat(factor)), s.load(&scale[at..]));
            s.store(&mut out[at..], v);
        }
        for at in whole..n {
            out[at] = x[at] * factor * scale[at];
        }
    }
}
