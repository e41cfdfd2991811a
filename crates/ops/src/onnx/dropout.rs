//! [`Dropout`](https://onnx.ai/onnx/operators/onnx__Dropout.html): the input as it is; in training, elements dropped at random
//! and the others scaled up. A seed gives the same draws in each call.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Cancelled, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_real;
use crate::elementwise::{bools, wrong_type};
use crate::random::Random;
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Dropout",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Dropout {
    seed: Option<f32>,
    /// From version 10 on the mask is BOOL, before it has the input's type.
    bool_mask: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    // `ratio` matters in training alone, which versions before 12 leave to another program.
    only(
        cx,
        match cx.opset {
            ..7 => &["is_test", "ratio"],
            7..12 => &["ratio"],
            _ => &["seed"],
        },
    )?;
    let attributes = &cx.node.attributes;
    if cx.opset < 7 && attributes.int_or("is_test", 0)? == 0 {
        return Err(unsupported("is_test", 0, "elements are dropped in training, from version 12 on"));
    }
    // The numbers are seeded with 32 bits.
    let seed = attributes.opt_int("seed")?.map(|seed| seed as f32);
    Ok(Box::new(Dropout { seed, bool_mask: cx.opset >= 10 }))
}

impl Kernel for Dropout {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let training = match cx.opt_tensor(2)? {
            Some(_) => bools(&cx.dense(2)?, 2)?.first().is_some_and(|&byte| byte != 0),
            None => false,
        };
        let ratio = match cx.opt_tensor(1)? {
            Some(_) => ratio(cx)?,
            None => 0.5,
        };
        if training && ratio != 0.0 {
            return by_real!(cx.tensor(0)?.dtype(), T => self.drop::<T>(cx, ratio),
                _ => Err(wrong_type(cx, 0, "FLOAT, FLOAT16, BFLOAT16 or DOUBLE numbers")));
        }
        if cx.output_count() > 1 {
            let input = cx.dense(0)?;
            let dtype = if self.bool_mask { DType::Bool } else { input.dtype() };
            let mut mask = cx.alloc(dtype, input.shape())?;
            match self.bool_mask {
                true => mask.bytes_mut().fill(1),
                false => {
                    by_real!(dtype, T => mask.elements_mut::<T>().fill(T::down(<T as Numeric>::Wide::ONE)),
                    _ => return Err(wrong_type(cx, 0, "floating-point numbers")))
                }
            }
            cx.set(1, mask.freeze());
        }
        let same = cx.take(0).ok_or(KernelError::MissingInput { index: 0 })?;
        cx.set(0, same);
        Ok(())
    }
}

/// The probability with which an element is dropped.
fn ratio(cx: &RunCx<'_>) -> Result<f64, KernelError> {
    let tensor = cx.dense(1)?;
    let ratio = by_real!(tensor.dtype(), T => tensor.as_slice::<T>()?.first().map(|v| v.up().to_f64()),
        _ => return Err(wrong_type(cx, 1, "a floating-point number")));
    match ratio.filter(|ratio| (0.0..1.0).contains(ratio)) {
        Some(ratio) => Ok(ratio),
        None => Err(KernelError::Other("`ratio` is one number from 0 on, below 1".into())),
    }
}

impl Dropout {
    fn drop<T: Numeric>(&self, cx: &mut RunCx<'_>, ratio: f64) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        let mut random = Random::of(self.seed);
        let mut watch = cx.cancel().watch();
        let draw = |_| watch.pass(4).map(|()| random.uniform() >= ratio);
        let kept: Vec<bool> = (0..input.len()).map(draw).collect::<Result<_, Cancelled>>()?;
        let scale = 1.0 / (1.0 - ratio);
        let mut out = cx.alloc(input.dtype(), input.shape())?;
        for ((o, v), &kept) in out.elements_mut::<T>().iter_mut().zip(input.as_slice::<T>()?).zip(&kept) {
            *o = if kept { T::down(T::Wide::from_f64(v.up().to_f64() * scale)) } else { T::default() };
        }
        cx.set(0, out.freeze());
        if cx.output_count() > 1 {
            let mut mask = cx.alloc(DType::Bool, input.shape())?;
            mask.bytes_mut().iter_mut().zip(kept).for_each(|(o, kept)| *o = u8::from(kept));
            cx.set(1, mask.freeze());
        }
        Ok(())
    }
}
