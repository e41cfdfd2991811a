//! [`Scaler`](https://onnx.ai/onnx/operators/onnx_aionnxml_Scaler.html): `(x - offset) * scale`, by feature (the last axis).

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::ml::features;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "Scaler",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Scaler {
    offset: Vec<f32>,
    scale: Vec<f32>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["offset", "scale"])?;
    let list = |name| -> Result<Vec<f32>, BuildError> {
        Ok(Vec::from(cx.node.attributes.opt_floats(name)?.unwrap_or(&[])))
    };
    Ok(Box::new(Scaler { offset: list("offset")?, scale: list("scale")? }))
}

impl Kernel for Scaler {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, values) = features(cx, 0)?;
        let width = shape.last().copied().unwrap_or(1);
        for list in [&self.offset, &self.scale] {
            if list.len() > 1 && list.len() != width {
                return Err(KernelError::Shape {
                    what: "there is one offset and scale, or one for each feature",
                    shapes: vec![shape, Shape::from_elem(list.len(), 1)],
                });
            }
        }
        let of = |list: &[f32], at: usize, default: f32| match list {
            [] => default,
            [one] => *one,
            list => list[at % width],
        };
        let mut out = cx.alloc(DType::Float, &shape)?;
        for (at, (o, v)) in out.elements_mut::<f32>().iter_mut().zip(values).enumerate() {
            *o = (v as f32 - of(&self.offset, at, 0.0)) * of(&self.scale, at, 1.0);
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
