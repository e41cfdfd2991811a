//! [`Pow`](https://onnx.ai/onnx/operators/onnx__Pow.html): `X ^ Y`, broadcast. The result has the type of X.

use half::{bf16, f16};
use heirloom_mem::{Element, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::broadcast;
use crate::broadcast::Walk;
use crate::by_type::by_type;
use crate::elementwise::{Arithmetic, Meeting, wrong_type};
use crate::numbers::Number;
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Pow",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(Arithmetic { meeting: Meeting::build(cx)?, run }))
}

/// An exponent: exact integers where it is one.
#[derive(Clone, Copy)]
enum Exponent {
    Integer(i64),
    Real(f64),
}

trait Base: Element {
    fn power(self, exponent: Exponent) -> Self;
}

macro_rules! real_base {
    ($($ty:ty: $to:expr, $from:expr);*) => {$(
        impl Base for $ty {
            fn power(self, exponent: Exponent) -> $ty {
                let base = ($to)(self);
                ($from)(match exponent {
                    Exponent::Real(e) if e == 2.0 => base * base,
                    Exponent::Real(e) => base.powf(e as _),
                    Exponent::Integer(e) => base.powf(e as _),
                })
            }
        }
    )*};
}
real_base! { f32: |v| v, |v| v; f64: |v| v, |v| v; f16: f16::to_f32, f16::from_f32; bf16: bf16::to_f32, bf16::from_f32 }

macro_rules! integer_base {
    ($($ty:ty),*) => {$(
        impl Base for $ty {
            fn power(self, exponent: Exponent) -> $ty {
                match exponent {
                    Exponent::Integer(e) if e >= 0 => self.wrapping_pow(u32::try_from(e).unwrap_or(u32::MAX)),
                    // Powers with other exponents are real numbers, cut off toward zero.
                    Exponent::Integer(e) => (self as f64).powf(e as f64) as $ty,
                    Exponent::Real(e) => (self as f64).powf(e) as $ty,
                }
            }
        }
    )*};
}
integer_base!(i64, i32, i16, i8, u64, u32, u16, u8);

fn run(cx: &mut RunCx<'_>, meeting: Meeting) -> Result<(), KernelError> {
    by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64, i64, i32, i16, i8, u64, u32, u16, u8], T => power::<T>(cx, meeting),
        _ => Err(wrong_type(cx, 0, "numbers")))
}

fn power<T: Base>(cx: &mut RunCx<'_>, meeting: Meeting) -> Result<(), KernelError> {
    let (x, y) = (cx.dense(0)?, cx.dense(1)?);
    let exponents = exponents(cx, &y)?;
    let second = meeting.second(x.shape(), y.shape())?;
    let shape: Shape = broadcast::shape(&[x.shape(), &second])?;
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let bases = x.as_slice::<T>()?;
    let elements = out.elements_mut::<T>();
    let walk = Walk::new(&shape, [x.shape(), &second]);
    walk.pieces(&mut cx.cancel().watch(), |at, [i, j], run| {
        for (k, o) in elements[at..at + run].iter_mut().enumerate() {
            *o = bases[i + k * walk.step[0]].power(exponents[j + k * walk.step[1]]);
        }
    })?;
    cx.set(0, out.freeze());
    Ok(())
}

fn exponents(cx: &RunCx<'_>, y: &Tensor) -> Result<Vec<Exponent>, KernelError> {
    by_type!(y.dtype(), [i64, i32, i16, i8, u64, u32, u16, u8], T => {
        let exponent = |&e: &T| Exponent::Integer(Number::to_i64(e));
        return Ok(y.as_slice::<T>()?.iter().map(exponent).collect());
    }, _ => {});
    by_type!(y.dtype(), [f32, f16, bf16, f64], T => {
        Ok(y.as_slice::<T>()?.iter().map(|e| Exponent::Real(crate::numbers::Number::to_f64(e.widen()))).collect())
    }, _ => Err(wrong_type(cx, 1, "numbers")))
}
