//! [`Multinomial`](https://onnx.ai/onnx/operators/onnx__Multinomial.html): places drawn from each row with probabilities whose
//! logarithms, up to a constant, are the row's elements; a seed gives the same draws in each call.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{dtype, only, unsupported};
use crate::by_type::by_real;
use crate::elementwise::wrong_type;
use crate::random::Random;
use crate::scalar::{Numeric, Scalar};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Multinomial",
    versions: (7, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Multinomial {
    wide: bool,
    samples: usize,
    seed: Option<f32>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["dtype", "sample_size", "seed"])?;
    let attributes = &cx.node.attributes;
    let wide = match dtype(cx, "dtype")? {
        None | Some(DType::Int32) => false,
        Some(DType::Int64) => true,
        Some(other) => return Err(unsupported("dtype", other, "INT32 and INT64 are")),
    };
    let size = attributes.int_or("sample_size", 1)?;
    let samples =
        usize::try_from(size).map_err(|_| unsupported("sample_size", size, "it is not negative"))?;
    Ok(Box::new(Multinomial { wide, samples, seed: attributes.opt_float("seed")? }))
}

impl Kernel for Multinomial {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        let [rows, classes] = *input.shape() else {
            let shapes = vec![Shape::from_slice(input.shape())];
            return Err(KernelError::Shape { what: "there is a row of classes for each sample", shapes });
        };
        if classes == 0 && rows * self.samples > 0 {
            return Err(KernelError::Other("nothing is drawn from no classes".into()));
        }
        let logits: Vec<f64> = by_real!(input.dtype(), T => {
            input.as_slice::<T>()?.iter().map(|v| v.up().to_f64()).collect()
        }, _ => return Err(wrong_type(cx, 0, "floating-point numbers")));
        let mut random = Random::of(self.seed);
        let mut watch = cx.cancel().watch();
        let mut draws = Vec::new();
        for row in logits.chunks_exact(classes.max(1)) {
            watch.pass(2 * classes)?;
            let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            let sums: Vec<f64> = row
                .iter()
                .map(|v| {
                    sum += (v - greatest).exp();
                    sum
                })
                .collect();
            for _ in 0..self.samples {
                watch.pass(8)?;
                let draw = random.uniform() * sum;
                draws.push(sums.partition_point(|&sum| sum <= draw).min(classes - 1));
            }
        }
        let mut out = cx.alloc(if self.wide { DType::Int64 } else { DType::Int32 }, &[rows, self.samples])?;
        match self.wide {
            true => out.elements_mut::<i64>().iter_mut().zip(draws).for_each(|(o, draw)| *o = draw as i64),
            false => out.elements_mut::<i32>().iter_mut().zip(draws).for_each(|(o, draw)| *o = draw as i32),
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
