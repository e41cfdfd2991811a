//! [`Shape`](https://onnx.ai/onnx/operators/onnx__Shape.html): the extents from axis `start` to before `end`.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec =
    KernelSpec { domain: "", op: "Shape", versions: (1, super::NEWEST), rank: 0, accepts: |_| true, build };

struct ShapeOf {
    start: i64,
    end: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset >= 15 { &["start", "end"] } else { &[] })?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(ShapeOf { start: attributes.int_or("start", 0)?, end: attributes.int_or("end", i64::MAX)? }))
}

impl Kernel for ShapeOf {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = match cx.value(0) {
            // The logical shape is known without decoding.
            Some(Value::Encoded(encoded)) if encoded.logical.is_some() => {
                encoded.logical.as_ref().map(|ty| ty.shape.clone()).unwrap_or_default()
            }
            _ => shape_of(cx, 0)?,
        };
        let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let clamp =
            |at: i64| usize::try_from(if at < 0 { at + rank } else { at }.clamp(0, rank)).unwrap_or(0);
        let (start, end) = (clamp(self.start), clamp(self.end));
        let part = shape.get(start..end).unwrap_or(&[]);
        let mut out = cx.alloc(DType::Int64, &[part.len()])?;
        for (o, &extent) in out.elements_mut::<i64>().iter_mut().zip(part) {
            *o = i64::try_from(extent).unwrap_or(i64::MAX);
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
