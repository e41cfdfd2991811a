//! [`Bernoulli`](https://onnx.ai/onnx/operators/onnx__Bernoulli.html): 1 with the probability that each element is, else 0; a
//! seed gives the same draws in each call.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Cancelled, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{dtype, only, unsupported};
use crate::by_type::{by_number, by_real};
use crate::elementwise::wrong_type;
use crate::random::Random;
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Bernoulli",
    versions: (15, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Bernoulli {
    dtype: Option<DType>,
    seed: Option<f32>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["dtype", "seed"])?;
    let ty = dtype(cx, "dtype")?;
    if let Some(ty) = ty.filter(|&ty| ty != DType::Bool) {
        by_number!(ty, _T => {}, _ => return Err(unsupported("dtype", ty, "number types and BOOL are")));
    }
    Ok(Box::new(Bernoulli { dtype: ty, seed: cx.node.attributes.opt_float("seed")? }))
}

impl Kernel for Bernoulli {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        let mut random = Random::of(self.seed);
        let mut watch = cx.cancel().watch();
        let draws: Vec<bool> = by_real!(input.dtype(), T => {
            let draw = |p: &T| watch.pass(2).map(|()| random.uniform() < p.up().to_f64());
            input.as_slice::<T>()?.iter().map(draw).collect::<Result<_, Cancelled>>()?
        }, _ => return Err(wrong_type(cx, 0, "floating-point numbers")));
        let dtype = self.dtype.unwrap_or(input.dtype());
        let mut out = cx.alloc(dtype, input.shape())?;
        if dtype == DType::Bool {
            out.bytes_mut().iter_mut().zip(draws).for_each(|(o, draw)| *o = u8::from(draw));
        } else {
            by_number!(dtype, T => {
                let one = T::down(<T as Numeric>::Wide::ONE);
                let pairs = out.elements_mut::<T>().iter_mut().zip(draws);
                pairs.for_each(|(o, draw)| *o = if draw { one } else { T::default() });
            }, _ => return Err(wrong_type(cx, 0, "numbers")));
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
