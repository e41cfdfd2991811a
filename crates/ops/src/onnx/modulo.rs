//! [`Mod`](https://onnx.ai/onnx/operators/onnx__Mod.html): the remainder of `A / B`, broadcast. With `fmod` = 0 it
//! has the sign of the divisor; with `fmod` = 1 that of the dividend, as C's `fmod`.

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::{binary, common_type, wrong_type};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Mod",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Mod {
    /// Whether the result has the dividend's sign.
    truncated: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["fmod"])?;
    match cx.node.attributes.int_or("fmod", 0)? {
        0 => Ok(Box::new(Mod { truncated: false })),
        1 => Ok(Box::new(Mod { truncated: true })),
        other => Err(unsupported("fmod", other, "0 and 1 are")),
    }
}

impl Kernel for Mod {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, truncated) = (common_type(cx, 2)?, self.truncated);
        by_type!(dtype, [f32, f16, bf16, f64], T => return real::<T>(cx, truncated), _ => {});
        by_type!(dtype, [u64, u32, u16, u8], T => {
            refuse_zero(cx.dense(1)?.as_slice::<T>()?)?;
            return binary(cx, |a: T, b: T| a % b);
        }, _ => {});
        by_type!(dtype, [i64, i32, i16, i8], T => {
            refuse_zero(cx.dense(1)?.as_slice::<T>()?)?;
            binary(cx, |a: T, b: T| {
                let rest = a.wrapping_rem(b);
                if !truncated && rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            })
        }, _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

fn refuse_zero<T: Default + PartialEq>(divisors: &[T]) -> Result<(), KernelError> {
    if divisors.contains(&T::default()) {
        return Err(KernelError::Other("an integer is divided by zero".into()));
    }
    Ok(())
}

/// The truncated remainder of two floats is exact, in whichever width.
fn real<T: Real>(cx: &mut RunCx<'_>, truncated: bool) -> Result<(), KernelError> {
    binary(cx, |a: T, b: T| {
        let (a, b) = (a.widen().to_f64(), b.widen().to_f64());
        let rest = a % b;
        let rest = match truncated {
            true => rest,
            false if rest == 0.0 => 0.0f64.copysign(b),
            false if (rest < 0.0) != (b < 0.0) => rest + b,
            false => rest,
        };
        T::narrow(<T::Wide as Wide>::from_f64(rest))
    })
}
