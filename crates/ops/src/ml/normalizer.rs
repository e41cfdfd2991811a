//! [`Normalizer`](https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html): each row divided by its greatest
//! magnitude, its sum of magnitudes or its length.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::ml::features;
use crate::reals::written;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "Normalizer",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

#[derive(Clone, Copy)]
enum Norm {
    Max,
    L1,
    L2,
}

struct Normalizer(Norm);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["norm"])?;
    Ok(Box::new(Normalizer(match cx.node.attributes.opt_string("norm")? {
        None | Some(b"MAX") => Norm::Max,
        Some(b"L1") => Norm::L1,
        Some(b"L2") => Norm::L2,
        Some(other) => return Err(unsupported("norm", String::from_utf8_lossy(other), "MAX, L1 and L2 are")),
    })))
}

impl Kernel for Normalizer {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, mut values) = features(cx, 0)?;
        let width = shape.last().copied().unwrap_or(1).max(1);
        for row in values.chunks_exact_mut(width) {
            let norm = match self.0 {
                Norm::Max => row.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                Norm::L1 => row.iter().map(|v| v.abs()).sum(),
                Norm::L2 => row.iter().map(|v| v * v).sum::<f64>().sqrt(),
            };
            if norm != 0.0 {
                row.iter_mut().for_each(|v| *v /= norm);
            }
        }
        let out = written(cx, DType::Float, &shape, &values)?;
        cx.set(0, out);
        Ok(())
    }
}
