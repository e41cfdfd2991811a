//! [`IsNaN`](https://onnx.ai/onnx/operators/onnx__IsNaN.html): whether each element is NaN, as BOOL.

use half::{bf16, f16};
use heirloom_mem::{DType, Element};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::{Plain, wrong_type};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "IsNaN",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => flags(cx, T::is_nan),
        _ => Err(wrong_type(cx, 0, "a FLOAT, FLOAT16, BFLOAT16 or DOUBLE tensor")))
}

fn flags<T: Element>(cx: &mut RunCx<'_>, f: impl Fn(T) -> bool) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let mut out = cx.alloc(DType::Bool, input.shape())?;
    for (flag, &v) in out.bytes_mut().iter_mut().zip(input.as_slice::<T>()?) {
        *flag = u8::from(f(v));
    }
    cx.set(0, out.freeze());
    Ok(())
}
