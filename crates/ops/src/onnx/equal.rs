//! [`Equal`](https://onnx.ai/onnx/operators/onnx__Equal.html): `A == B`, broadcast, as BOOL. NaN equals nothing.

use half::{bf16, f16};
use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::broadcast;
use crate::by_type::by_type;
use crate::elementwise::{Plain, bools, common_type, compare, compare_numbers, wrong_type, zip};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Equal",
    versions: (7, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    if let (Some(Value::Strings(a)), Some(Value::Strings(b))) = (cx.value(0), cx.value(1)) {
        let (a, b) = (a.clone(), b.clone());
        let shape = broadcast::shape(&[&a.shape, &b.shape])?;
        let mut out = cx.alloc(DType::Bool, &shape)?;
        let (x, y): (Vec<&[u8]>, Vec<&[u8]>) =
            (a.elements.iter().map(|e| &**e).collect(), b.elements.iter().map(|e| &**e).collect());
        zip(&mut cx.cancel().watch(), out.bytes_mut(), &shape, [&a.shape, &b.shape], &x, &y, |x, y| {
            u8::from(x == y)
        })?;
        cx.set(0, out.freeze());
        return Ok(());
    }
    let dtype = common_type(cx, 2)?;
    if dtype == DType::Bool {
        return compare(cx, |t| bools(t, 0), |a, b| (a == 0) == (b == 0));
    }
    by_type!(dtype, [f32, f16, bf16, f64, i64, i32, i16, i8, u64, u32, u16, u8],
        T => compare_numbers(cx, |a: T, b: T| a == b),
        _ => Err(wrong_type(cx, 0, "numbers, BOOL or strings")))
}
