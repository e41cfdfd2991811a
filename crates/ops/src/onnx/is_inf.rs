//! [`IsInf`](https://onnx.ai/onnx/operators/onnx__IsInf.html): whether each element is infinite, of a sign that is asked for.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::SmallFloat;

use crate::attributes::only;
use crate::by_type::by_real;
use crate::elementwise::{flags, wrong_type};
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "IsInf",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct IsInf {
    negative: bool,
    positive: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["detect_negative", "detect_positive"])?;
    let flag = |name| cx.node.attributes.int_or(name, 1).map(|flag| flag != 0);
    Ok(Box::new(IsInf { negative: flag("detect_negative")?, positive: flag("detect_positive")? }))
}

impl Kernel for IsInf {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let infinite =
            |v: f32| (self.positive && v == f32::INFINITY) || (self.negative && v == f32::NEG_INFINITY);
        let dtype = cx.tensor(0)?.dtype();
        if dtype == DType::Double {
            // A great double is no infinite one.
            let infinite =
                |v: f64| (self.positive && v == f64::INFINITY) || (self.negative && v == f64::NEG_INFINITY);
            return flags(cx, infinite);
        }
        by_real!(dtype, T => return flags(cx, |v: T| infinite(v.to_f32())), _ => {});
        let Some(float) = SmallFloat::of(dtype).filter(|float| float.width() == 8) else {
            return Err(wrong_type(cx, 0, "floating-point numbers"));
        };
        let input = cx.dense(0)?;
        let mut out = cx.alloc(DType::Bool, input.shape())?;
        let codes = input.dense_bytes().unwrap_or(&[]);
        out.bytes_mut().iter_mut().zip(codes).for_each(|(o, &c)| *o = u8::from(infinite(float.decode(c))));
        cx.set(0, out.freeze());
        Ok(())
    }
}
