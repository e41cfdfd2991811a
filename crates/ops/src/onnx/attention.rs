//! [`Attention`](https://onnx.ai/onnx/operators/onnx__Attention.html): scaled dot-product attention, with grouped heads, masks, a soft
//! cap, sliding windows, and past keys and values, behind which the new ones are appended in place.

mod cache;
pub(crate) mod core;
mod mask;

use half::{bf16, f16};
use heirloom_mem::{BytesMut, DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use self::cache::Rows;
use self::mask::Mask;
use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers;
use crate::real::Real;
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Attention",
    versions: (23, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// What the optional fourth output holds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Scores {
    Raw,
    Capped,
    Masked,
    Probabilities,
}

struct Attention {
    q_heads: Option<usize>,
    kv_heads: Option<usize>,
    scale: Option<f32>,
    softcap: f32,
    causal: bool,
    /// Keys that a query sees to the left and right of its own place.
    window: (Option<i64>, Option<i64>),
    scores: Scores,
    /// The softmax is computed in DOUBLE, whatever the inputs.
    double: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    const KNOWN: &[&str] = &[
        "is_causal",
        "kv_num_heads",
        "q_num_heads",
        "qk_matmul_output_mode",
        "scale",
        "softcap",
        "softmax_precision",
        "left_window_size",
        "right_window_size",
    ];
    only(cx, if cx.opset < 25 { &KNOWN[..7] } else { KNOWN })?;
    let attributes = &cx.node.attributes;
    let heads = |name: &str| -> Result<Option<usize>, BuildError> {
        let count = attributes.opt_int(name)?;
        count
            .map(|n| usize::try_from(n).map_err(|_| unsupported(name, n, "it is a number of heads")))
            .transpose()
    };
    let bound = |name: &str| -> Result<Option<i64>, BuildError> {
        match attributes.int_or(name, -1)? {
            -1 => Ok(None),
            n if n >= 0 => Ok(Some(n)),
            n => Err(unsupported(name, n, "it is -1 or a number of positions")),
        }
    };
    // At least as exact as asked for: in FLOAT, for DOUBLE inputs or on request in DOUBLE.
    let double = match attributes.int_or("softmax_precision", 1)? {
        1 | 10 | 16 => false,
        11 => true,
        other => {
            return Err(unsupported("softmax_precision", other, "FLOAT, FLOAT16, BFLOAT16 and DOUBLE are"));
        }
    };
    Ok(Box::new(Attention {
        q_heads: heads("q_num_heads")?,
        kv_heads: heads("kv_num_heads")?,
        scale: attributes.opt_float("scale")?,
        double,
        softcap: attributes.float_or("softcap", 0.0)?,
        causal: attributes.int_or("is_causal", 0)? != 0,
        window: (bound("left_window_size")?, bound("right_window_size")?),
        scores: match attributes.int_or("qk_matmul_output_mode", 0)? {
            0 => Scores::Raw,
            1 => Scores::Capped,
            2 => Scores::Masked,
            3 => Scores::Probabilities,
            other => return Err(unsupported("qk_matmul_output_mode", other, "0 to 3 are")),
        },
    }))
}

impl Kernel for Attention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => self.attend::<T>(cx),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

/// Extents of the query.
#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    heads: usize,
    queries: usize,
    size: usize,
}

impl Attention {
    /// Reads `[batch, heads, tokens, size]`, or `[batch, tokens, heads * size]` where the node says how many heads.
    fn extents(shape: &[usize], heads: Option<usize>) -> Result<Extents, KernelError> {
        match (shape, heads) {
            (&[batch, heads, queries, size], h) if h.is_none_or(|h| h == heads) => {
                Ok(Extents { batch, heads, queries, size })
            }
            (&[batch, queries, hidden], Some(heads)) if heads > 0 && hidden % heads == 0 => {
                Ok(Extents { batch, heads, queries, size: hidden / heads })
            }
            _ => Err(KernelError::Shape {
                what: "queries, keys and values are [batch, heads, tokens, size], or [batch, tokens, heads * size] with \
                       `q_num_heads` and `kv_num_heads`",
                shapes: vec![Shape::from_slice(shape)],
            }),
        }
    }

    fn attend<T: Real>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let q = cx.dense(0)?;
        let query = Self::extents(q.shape(), self.q_heads)?;
        let (keys, past) = cache::gather::<T>(cx, 1, 4, 1, self.kv_heads)?;
        let (values, _) = cache::gather::<T>(cx, 2, 5, 2, self.kv_heads)?;
        check(&query, &keys, &values)?;
        let valid = self.valid(cx, query.batch, keys.len)?;
        let offset = |batch: usize| match (&valid, past) {
            (_, Some(past)) => i64::try_from(past).unwrap_or(i64::MAX),
            (Some(valid), None) => valid[batch] - i64::try_from(query.queries).unwrap_or(i64::MAX),
            (None, None) => 0,
        };
        let mask = Mask::of::<T>(cx, 3, [query.batch, query.heads, query.queries, keys.len])?;
        let mut out = cx.alloc(T::DTYPE, &output_shape(q.shape(), &query, values.size))?;
        let flat = q.shape().len() == 3;
        let mut scores_out = match cx.wants(3) {
            true => Some(cx.alloc(T::DTYPE, &[query.batch, query.heads, query.queries, keys.len])?),
            false => None,
        };
        let wide = size_of::<T::Wide>();
        let mut scratch = Scratch {
            keys: cx.scratch(keys.len * keys.size * wide),
            values: cx.scratch(values.len * values.size * wide),
            row: cx.scratch((keys.len + keys.size + values.size) * wide),
        };
        let group = query.heads / keys.heads;
        let scale = T::Wide::from_f64(self.scale.map_or(1.0 / (query.size as f64).sqrt(), f64::from));
        let q = q.as_slice::<T>()?;
        let to = out.elements_mut::<T>();
        for batch in 0..query.batch {
            for kv_head in 0..keys.heads {
                keys.widen::<T>(batch, kv_head, scratch.keys.elements_mut())?;
                values.widen::<T>(batch, kv_head, scratch.values.elements_mut())?;
                for head in kv_head * group..(kv_head + 1) * group {
                    for i in 0..query.queries {
                        cx.cancel().check()?;
                        let token = if flat {
                            (batch * query.queries + i) * query.heads + head
                        } else {
                            (batch * query.heads + head) * query.queries + i
                        };
                        let place = offset(batch).saturating_add(i64::try_from(i).unwrap_or(i64::MAX));
                        let limits = self.limits(place, keys.len, valid.as_ref().map(|valid| valid[batch]));
                        let at = (batch * query.heads + head) * query.queries + i;
                        let scores = scores_out
                            .as_mut()
                            .map(|out| &mut out.elements_mut::<T>()[at * keys.len..(at + 1) * keys.len]);
                        let row = Row {
                            keys: keys.len,
                            q: &q[token * query.size..(token + 1) * query.size],
                            limits,
                            scale,
                        };
                        let to = &mut to[token * values.size..(token + 1) * values.size];
                        self.row(&row, &mut scratch, &mask, [batch, head, i], scores, to);
                    }
                }
            }
        }
        let Scratch { keys, values, row } = scratch;
        [keys, values, row].into_iter().for_each(|scratch| cx.release(scratch));
        cx.set(0, out.freeze());
        if let Some(scores) = scores_out {
            cx.set(3, scores.freeze());
        }
        Ok(())
    }

    /// Input 6: valid keys of each batch entry.
    fn valid(
        &self,
        cx: &RunCx<'_>,
        batch: usize,
        keys: usize,
    ) -> Result<Option<integers::Ints>, KernelError> {
        let Some(valid) = integers::opt_list(cx, 6)? else { return Ok(None) };
        let high = i64::try_from(keys).unwrap_or(i64::MAX);
        if let Some(&value) = valid.iter().find(|&&v| v < 0 || v > high) {
            return Err(KernelError::Range { what: "nonpad_kv_seqlen", value, low: 0, high });
        }
        if valid.len() != batch {
            return Err(KernelError::Shape {
                what: "nonpad_kv_seqlen has one element for each batch entry",
                shapes: vec![Shape::from_slice(&[valid.len()]), Shape::from_slice(&[batch])],
            });
        }
        Ok(Some(valid))
    }

    /// The keys that a query at `place` may see.
    fn limits(&self, place: i64, keys: usize, valid: Option<i64>) -> std::ops::Range<usize> {
        let mut high = i64::try_from(keys).unwrap_or(i64::MAX);
        let mut low = 0;
        if let Some(valid) = valid {
            high = high.min(valid);
        }
        if self.causal {
            high = high.min(place.saturating_add(1));
        }
        if let Some(right) = self.window.1 {
            high = high.min(place.saturating_add(right).saturating_add(1));
        }
        if let Some(left) = self.window.0 {
            low = place.saturating_sub(left).max(0);
        }
        let low = usize::try_from(low).unwrap_or(usize::MAX).min(keys);
        low..usize::try_from(high.max(0)).unwrap_or(keys).max(low)
    }

    /// One query's output.
    fn row<T: Real>(
        &self,
        row: &Row<'_, T>,
        scratch: &mut Scratch,
        mask: &Mask<T::Wide>,
        at: [usize; 3],
        mut scores_out: Option<&mut [T]>,
        to: &mut [T],
    ) {
        let (size, out_size) = (row.q.len(), to.len());
        let keys = scratch.keys.elements::<T::Wide>();
        let values = scratch.values.elements::<T::Wide>();
        let (q, rest) = scratch.row.elements_mut::<T::Wide>().split_at_mut(size);
        let (sums, scores) = rest.split_at_mut(out_size);
        let scores = &mut scores[..row.keys];
        q.iter_mut().zip(row.q).for_each(|(w, v)| *w = v.widen() * row.scale);
        let minus_infinity = T::Wide::from_f32(f32::NEG_INFINITY);
        let mut note = |stage: Scores, at: usize, score: T::Wide| {
            if let Some(out) = scores_out.as_deref_mut().filter(|_| self.scores == stage) {
                out[at] = T::narrow(score);
            }
        };
        let mut greatest = minus_infinity;
        for (j, score) in scores.iter_mut().enumerate() {
            // Keys out of sight are computed only where somebody looks at their scores.
            let seen = row.limits.contains(&j);
            *score = minus_infinity;
            if !seen && self.scores != Scores::Raw && self.scores != Scores::Capped {
                note(Scores::Masked, j, minus_infinity);
                continue;
            }
            let mut value = crate::product::dot(q, &keys[j * size..(j + 1) * size]);
            note(Scores::Raw, j, value);
            if self.softcap > 0.0 {
                let cap = T::Wide::from_f32(self.softcap);
                value = (value / cap).tanh() * cap;
            }
            note(Scores::Capped, j, value);
            if seen {
                *score = mask.apply(value, at, j);
                greatest = greatest.larger(*score);
            }
            note(Scores::Masked, j, *score);
        }
        let (mut sum, mut total) = (T::Wide::default(), 0.0);
        for score in scores.iter_mut() {
            // A query that sees no key gets zeros.
            *score = match *score == minus_infinity {
                true => T::Wide::default(),
                false if self.double => T::Wide::from_f64((*score - greatest).to_f64().exp()),
                false => (*score - greatest).exp(),
            };
            total += score.to_f64();
            sum += *score;
        }
        sums.fill(T::Wide::default());
        for (j, score) in scores.iter().enumerate() {
            let share = match *score == T::Wide::default() {
                true => *score,
                false if self.double => T::Wide::from_f64(score.to_f64() / total),
                false => *score / sum,
            };
            note(Scores::Probabilities, j, share);
            if share != T::Wide::default() {
                crate::product::add_scaled(sums, share, &values[j * out_size..(j + 1) * out_size]);
            }
        }
        to.iter_mut().zip(sums).for_each(|(o, sum)| *o = T::narrow(*sum));
    }
}

struct Row<'a, T: Real> {
    keys: usize,
    q: &'a [T],
    limits: std::ops::Range<usize>,
    scale: T::Wide,
}

/// Keys and values of one head, and room for one query.
struct Scratch {
    keys: BytesMut,
    values: BytesMut,
    row: BytesMut,
}

fn output_shape(q: &[usize], query: &Extents, size: usize) -> Shape {
    match q.len() {
        3 => Shape::from_slice(&[query.batch, query.queries, query.heads * size]),
        _ => Shape::from_slice(&[query.batch, query.heads, query.queries, size]),
    }
}

fn check(query: &Extents, keys: &Rows, values: &Rows) -> Result<(), KernelError> {
    let fits = keys.batch == query.batch
        && values.batch == query.batch
        && keys.size == query.size
        && keys.len == values.len
        && keys.heads == values.heads
        && keys.heads > 0
        && query.heads.is_multiple_of(keys.heads);
    if fits {
        return Ok(());
    }
    let rows = |rows: &Rows| Shape::from_slice(&[rows.batch, rows.heads, rows.len, rows.size]);
    Err(KernelError::Shape {
        what: "keys and values have the batch, the query's heads are a multiple of theirs, and keys are as long as queries",
        shapes: vec![
            Shape::from_slice(&[query.batch, query.heads, query.queries, query.size]),
            rows(keys),
            rows(values),
        ],
    })
}

/// A tensor of the type of `T`, or what is wrong.
fn typed<T: Real>(tensor: &Tensor, index: usize) -> Result<(), KernelError> {
    let (dtype, expected): (DType, DType) = (tensor.dtype(), T::DTYPE);
    if dtype == expected {
        return Ok(());
    }
    Err(KernelError::InputType {
        index,
        expected: format!("{expected} tensor, as the query is"),
        actual: format!("{dtype} tensor"),
    })
}
