//! [`IsNaN`](https://onnx.ai/onnx/operators/onnx__IsNaN.html): whether each element is NaN, as BOOL.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::SmallFloat;

use crate::attributes::only;
use crate::by_type::by_real;
use crate::elementwise::{Plain, flags, wrong_type};

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
    let dtype = cx.tensor(0)?.dtype();
    by_real!(dtype, T => return flags(cx, T::is_nan), _ => {});
    let Some(float) = SmallFloat::of(dtype).filter(|float| float.width() == 8) else {
        return Err(wrong_type(cx, 0, "floating-point numbers"));
    };
    let input = cx.dense(0)?;
    let mut out = cx.alloc(DType::Bool, input.shape())?;
    let codes = input.dense_bytes().unwrap_or(&[]);
    out.bytes_mut().iter_mut().zip(codes).for_each(|(o, &c)| *o = u8::from(float.decode(c).is_nan()));
    cx.set(0, out.freeze());
    Ok(())
}
