//! [`MultiHeadAttention`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MultiHeadAttention):
//! attention of heads, past rows in front of the new ones. Packed queries, keys and values, which ONNX Runtime's CPU kernel
//! does not take either, are refused.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::heads::{self, Heads, Mask, Rules, ScoreBias};
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "MultiHeadAttention",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MultiHead {
    rules: Rules,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["mask_filter_value", "num_heads", "scale", "unidirectional"])?;
    for (at, name) in [(8, "past_sequence_length"), (9, "cache_indirection")] {
        if cx.node.inputs.get(at).copied().flatten().is_some() {
            return Err(unsupported(name, "given", "this input is not"));
        }
    }
    if cx.node.outputs.get(3).copied().flatten().is_some() {
        return Err(unsupported("qk", "asked for", "scores are not put out"));
    }
    Ok(Box::new(MultiHead { rules: Rules::read(cx)? }))
}

impl MultiHead {
    /// Queries, keys and values before past rows.
    fn parts(&self, cx: &RunCx<'_>) -> Result<[Heads; 3], KernelError> {
        let heads = self.rules.heads;
        let (_, q_shape, q) = input(cx, 0)?;
        let unfit = |other: &[usize]| {
            misfit(
                "queries, keys and values are [batch, rows, heads * size]; packed ones are not supported",
                &[&q_shape, other],
            )
        };
        let bias = opt_input(cx, 3)?.map(|(_, _, bias)| bias);
        let bias = bias.as_deref();
        let part = |from: usize, width: usize| -> Result<Option<&[f64]>, KernelError> {
            match bias {
                None => Ok(None),
                Some(bias) => bias.get(from..from + width).map(Some).ok_or_else(|| unfit(&[bias.len()])),
            }
        };
        let &[batch, rows, width] = &q_shape[..] else { return Err(unfit(&[])) };
        if width % heads != 0 {
            return Err(unfit(&[heads]));
        }
        let size = width / heads;
        let queries = Heads::of_rows([batch, rows, heads, size], &q, (width, 0, size), part(0, width)?);
        let (_, k_shape, k) = input(cx, 1)?;
        let (_, v_shape, v) = input(cx, 2)?;
        let one = |shape: &[usize], values: Vec<f64>, from: usize| match *shape {
            [b, keys, own] if b == batch && own % heads == 0 => {
                let size = own / heads;
                Ok(Heads::of_rows([batch, keys, heads, size], &values, (own, 0, size), part(from, own)?))
            }
            // Keys and values of another sequence, projected before.
            [_, _, _, _] => Heads::of_shape(shape, values),
            _ => Err(unfit(shape)),
        };
        Ok([queries, one(&k_shape, k, width)?, one(&v_shape, v, 2 * width)?])
    }
}

impl Kernel for MultiHead {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let [q, mut k, mut v] = self.parts(cx)?;
        for (index, heads) in [(6, &mut k), (7, &mut v)] {
            if let Some((_, shape, values)) = opt_input(cx, index)? {
                *heads = heads.clone().behind(&Heads::of_shape(&shape, values)?)?;
            }
        }
        let mask = Mask::read(cx, 4, &self.rules, [q.batch, q.rows, k.rows])?;
        let bias = ScoreBias::read(cx, 5, [q.batch, q.heads, q.rows, k.rows])?;
        let (shape, out) = heads::attend(cx, &self.rules, [&q, &k, &v], &mask, bias.as_ref())?;
        let dtype = cx.tensor(0)?.dtype();
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        heads::set(cx, 1, dtype, &k)?;
        heads::set(cx, 2, dtype, &v)
    }
}
