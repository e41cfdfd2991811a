//! [`Range`](https://onnx.ai/onnx/operators/onnx__Range.html): start, start + delta, … before limit.

use half::{bf16, f16};
use heirloom_mem::Element;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::{Plain, common_type, wrong_type};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Range",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset >= 27 { &["stash_type"] } else { &[] })?;
    match cx.node.attributes.int_or("stash_type", 1)? {
        1 => Ok(Box::new(Plain(run))),
        other => Err(unsupported("stash_type", other, "half-width sequences are computed in FLOAT")),
    }
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let dtype = common_type(cx, 3)?;
    by_type!(dtype, [i64, i32, i16], T => return integers::<T>(cx), _ => {});
    by_type!(dtype, [f32, f64, f16, bf16], T => reals::<T>(cx), _ => Err(wrong_type(cx, 0, "numbers")))
}

fn scalar<T: Element>(cx: &RunCx<'_>, index: usize) -> Result<T, KernelError> {
    let list = cx.dense(index)?;
    match list.as_slice::<T>()? {
        [value] => Ok(*value),
        _ => Err(KernelError::Shape {
            what: "start, limit and delta have one element",
            shapes: vec![heirloom_mem::Shape::from_slice(list.shape())],
        }),
    }
}

fn zero_step() -> KernelError {
    KernelError::Range { what: "delta", value: 0, low: 1, high: i64::MAX }
}

fn integers<T: Element + Into<i64> + TryFrom<i64>>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let [start, limit, delta]: [i64; 3] =
        [scalar::<T>(cx, 0)?.into(), scalar::<T>(cx, 1)?.into(), scalar::<T>(cx, 2)?.into()];
    if delta == 0 {
        return Err(zero_step());
    }
    let span =
        if delta > 0 { i128::from(limit) - i128::from(start) } else { i128::from(start) - i128::from(limit) };
    let count = span.max(0).unsigned_abs().div_ceil(u128::from(delta.unsigned_abs()));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = cx.alloc(T::DTYPE, &[count])?;
    let mut value = start;
    let mut watch = cx.cancel().watch();
    for o in out.elements_mut::<T>() {
        watch.pass(1)?;
        *o = T::try_from(value).unwrap_or_default();
        value = value.wrapping_add(delta);
    }
    cx.set(0, out.freeze());
    Ok(())
}

fn reals<T: Real>(cx: &mut RunCx<'_>) -> Result<(), KernelError>
where
    f64: From<T>,
{
    let [start, limit, delta]: [f64; 3] =
        [scalar::<T>(cx, 0)?.into(), scalar::<T>(cx, 1)?.into(), scalar::<T>(cx, 2)?.into()];
    if delta == 0.0 {
        return Err(zero_step());
    }
    let count = ((limit - start) / delta).ceil().max(0.0);
    if !count.is_finite() || count > isize::MAX as f64 {
        return Err(KernelError::Other(format!(
            "a sequence from {start} to {limit} by {delta} has no finite length"
        )));
    }
    let mut out = cx.alloc(T::DTYPE, &[count as usize])?;
    let mut watch = cx.cancel().watch();
    for (at, o) in out.elements_mut::<T>().iter_mut().enumerate() {
        watch.pass(1)?;
        let wide = <T::Wide as crate::real::num::Wide>::from_f64(start + at as f64 * delta);
        *o = T::narrow(wide);
    }
    cx.set(0, out.freeze());
    Ok(())
}
