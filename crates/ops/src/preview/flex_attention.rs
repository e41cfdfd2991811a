//! [`FlexAttention`](https://onnx.ai/onnx/operators/onnx_aionnxpreview_FlexAttention.html): attention whose scores and
//! probabilities the model's own sub-graphs change. The session runs it as three stages with the sub-graphs between them; a kernel
//! is one stage, which the attribute `stage` names:
//!
//! 0. queries, keys → scores;
//! 1. scores, queries, keys → probabilities;
//! 2. probabilities, queries, values → the output.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{dtype, is_real, only, unsupported};
use crate::by_type::by_real;
use crate::elementwise::wrong_type;
use crate::product::{add_scaled, dot};
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.preview",
    op: "FlexAttention",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct FlexAttention {
    stage: i64,
    scale: Option<f32>,
    /// The type of scores and probabilities, where the node says.
    precision: Option<DType>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["scale", "softmax_precision", "stage"])?;
    let precision = dtype(cx, "softmax_precision")?;
    if let Some(other) = precision.filter(|&precision| !is_real(precision)) {
        return Err(unsupported("softmax_precision", other, "FLOAT, FLOAT16, BFLOAT16 and DOUBLE are"));
    }
    let stage = cx.node.attributes.int_or("stage", 0)?;
    if !(0..=2).contains(&stage) {
        return Err(unsupported("stage", stage, "0 to 2 are"));
    }
    Ok(Box::new(FlexAttention { stage, scale: cx.node.attributes.opt_float("scale")?, precision }))
}

impl Kernel for FlexAttention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        // Queries give the type of the values, scores and probabilities have that of the softmax.
        let query = usize::from(self.stage > 0);
        let values = cx.tensor(query)?.dtype();
        let precision = self.precision.unwrap_or(match values {
            DType::Double => DType::Double,
            _ => DType::Float,
        });
        if self.stage > 0 && cx.tensor(0)?.dtype() != precision {
            return Err(KernelError::Other(format!(
                "`score_mod` and `prob_mod` keep the type of the softmax, {precision}; they give {}",
                cx.tensor(0)?.dtype()
            )));
        }
        by_real!(values, T => by_real!(precision, P => match self.stage {
            0 => self.scores::<T, P>(cx),
            1 => probabilities::<P>(cx),
            _ => output::<T, P>(cx),
        }, _ => Err(wrong_type(cx, 0, "real numbers"))), _ => Err(wrong_type(cx, query, "real numbers")))
    }
}

/// Batch, heads, tokens and size.
fn extents(tensor: &Tensor) -> Result<[usize; 4], KernelError> {
    tensor.shape().try_into().map_err(|_| KernelError::Shape {
        what: "queries, keys and values are [batch, heads, tokens, size]",
        shapes: vec![Shape::from_slice(tensor.shape())],
    })
}

/// The extents of queries and of keys or values, whose heads each serve a group of the queries'.
fn grouped(queries: &Tensor, keys: &Tensor) -> Result<([usize; 4], [usize; 4]), KernelError> {
    let (q, k) = (extents(queries)?, extents(keys)?);
    if q[0] != k[0] || (q[1] != k[1] && (k[1] == 0 || q[1] % k[1] != 0)) {
        return Err(KernelError::Shape {
            what: "keys and values have the batch of the queries and a number of heads that divides theirs",
            shapes: vec![Shape::from_slice(&q), Shape::from_slice(&k)],
        });
    }
    Ok((q, k))
}

impl FlexAttention {
    fn scores<T: Real, P: Real>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (queries, keys) = (cx.dense(0)?, cx.dense(1)?);
        let (q, k) = grouped(&queries, &keys)?;
        if q[3] != k[3] {
            return Err(KernelError::Shape {
                what: "queries and keys are of one size",
                shapes: vec![Shape::from_slice(&q), Shape::from_slice(&k)],
            });
        }
        let scale = self.scale.map_or(1.0 / (q[3] as f64).sqrt(), f64::from);
        let (group, size) = (q[1] / k[1].max(1), q[3]);
        let mut out = cx.alloc(P::DTYPE, &[q[0], q[1], q[2], k[2]])?;
        let (queries, keys) = (widen::<T>(queries.as_slice()?), widen::<T>(keys.as_slice()?));
        let to = out.elements_mut::<P>();
        if to.is_empty() {
            cx.set(0, out.freeze());
            return Ok(());
        }
        for (row, to) in to.chunks_exact_mut(k[2]).enumerate() {
            cx.cancel().check()?;
            let head = row / q[2];
            let own = (head / q[1]) * k[1] + head % q[1] / group;
            let query = &queries[row * size..(row + 1) * size];
            for (j, to) in to.iter_mut().enumerate() {
                let key = (own * k[2] + j) * size;
                let score = dot(query, &keys[key..key + size]).to_f64() * scale;
                *to = P::narrow(P::Wide::from_f64(score));
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// The elements in the type that is computed with.
fn widen<T: Real>(elements: &[T]) -> Vec<T::Wide> {
    elements.iter().map(|v| v.widen()).collect()
}

fn probabilities<P: Real>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let scores = cx.dense(0)?;
    let (q, k) = grouped(cx.tensor(1)?, cx.tensor(2)?)?;
    let shape = kept(&scores, [q[0], q[1], q[2], k[2]])?;
    let mut out = cx.alloc(P::DTYPE, &shape)?;
    if shape.iter().all(|&extent| extent > 0) {
        let rows = scores.as_slice::<P>()?.chunks_exact(k[2]);
        for (to, from) in out.elements_mut::<P>().chunks_exact_mut(k[2]).zip(rows) {
            cx.cancel().check()?;
            let greatest =
                from.iter().map(|v| v.widen()).fold(P::Wide::from_f32(f32::NEG_INFINITY), Wide::larger);
            let powers: Vec<_> = from.iter().map(|v| (v.widen() - greatest).exp()).collect();
            let sum = powers.iter().fold(P::Wide::ZERO, |sum, &power| sum + power);
            to.iter_mut().zip(powers).for_each(|(to, power)| *to = P::narrow(power / sum));
        }
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// The shape that a sub-graph must keep.
fn kept(given: &Tensor, shape: [usize; 4]) -> Result<[usize; 4], KernelError> {
    if given.shape() == shape {
        return Ok(shape);
    }
    Err(KernelError::Shape {
        what: "`score_mod` and `prob_mod` keep the shape [batch, heads, queries, keys]",
        shapes: vec![Shape::from_slice(given.shape()), Shape::from_slice(&shape)],
    })
}

fn output<T: Real, P: Real>(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (given, values) = (cx.dense(0)?, cx.dense(2)?);
    let (q, v) = grouped(cx.tensor(1)?, &values)?;
    if values.dtype() != T::DTYPE {
        return Err(wrong_type(cx, 2, "numbers of the queries' type"));
    }
    kept(&given, [q[0], q[1], q[2], v[2]])?;
    let (group, size) = (q[1] / v[1].max(1), v[3]);
    let mut out = cx.alloc(T::DTYPE, &[q[0], q[1], q[2], size])?;
    if out.elements_mut::<T>().is_empty() {
        cx.set(0, out.freeze());
        return Ok(());
    }
    let from: Vec<_> =
        values.as_slice::<T>()?.iter().map(|v| P::Wide::from_f64(v.widen().to_f64())).collect();
    let given = given.as_slice::<P>()?;
    let mut sums = vec![P::Wide::ZERO; size];
    for (row, to) in out.elements_mut::<T>().chunks_exact_mut(size).enumerate() {
        cx.cancel().check()?;
        let head = row / q[2];
        let own = (head / q[1]) * v[1] + head % q[1] / group;
        sums.fill(P::Wide::ZERO);
        for (j, share) in given[row * v[2]..(row + 1) * v[2]].iter().enumerate() {
            let at = (own * v[2] + j) * size;
            add_scaled(&mut sums, share.widen(), &from[at..at + size]);
        }
        to.iter_mut().zip(&sums).for_each(|(to, sum)| *to = T::narrow(T::Wide::from_f64(sum.to_f64())));
    }
    cx.set(0, out.freeze());
    Ok(())
}
