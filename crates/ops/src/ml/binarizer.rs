//! [`Binarizer`](https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html): 1 above a threshold, else 0.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{map, wrong_type};
use crate::numbers::Number;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "Binarizer",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Binarizer {
    threshold: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["threshold"])?;
    Ok(Box::new(Binarizer { threshold: f64::from(cx.node.attributes.float_or("threshold", 0.0)?) }))
}

impl Kernel for Binarizer {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let dtype = cx.tensor(0)?.dtype();
        by_type!(dtype, [f32, f64, f16, bf16, i64, i32],
            T => map(cx, dtype, |v: T| T::from_f64(f64::from(u8::from(Number::to_f64(v) > self.threshold)))),
            _ => Err(wrong_type(cx, 0, "FLOAT, DOUBLE, INT64 or INT32")))
    }
}
