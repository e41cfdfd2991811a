//! [`GroupQueryAttention`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GroupQueryAttention):
//! causal attention with grouped heads over a cache that grows, or that has all its rows from the start (past and present
//! share one buffer). Either way the new rows alone are written, where all batch entries are equally long.

use half::{bf16, f16};
use heirloom_mem::{Shape, Tensor, TensorMut, copy};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{self, Ints};
use crate::onnx::attention::core::Core;
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "GroupQueryAttention",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct GroupQuery {
    core: Core,
    rotary: bool,
    interleaved: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    const KNOWN: &[&str] = &[
        "causal",
        "do_rotary",
        "k_quant_type",
        "kv_cache_bit_width",
        "kv_num_heads",
        "local_window_size",
        "num_heads",
        "qk_norm_epsilon",
        "qk_output",
        "rotary_interleaved",
        "scale",
        "sliding_window_cache",
        "smooth_softmax",
        "softcap",
        "v_quant_type",
    ];
    only(cx, KNOWN)?;
    let attributes = &cx.node.attributes;
    for (name, reason) in [
        ("qk_output", "scores are not put out"),
        ("sliding_window_cache", "caches of all rows are"),
        ("smooth_softmax", "the plain softmax is"),
    ] {
        match attributes.int_or(name, 0)? {
            0 => {}
            // -1 is smooth_softmax's way of saying nothing.
            -1 if name == "smooth_softmax" => {}
            other => return Err(unsupported(name, other, reason)),
        }
    }
    for name in ["k_quant_type", "v_quant_type"] {
        match attributes.opt_string(name)? {
            None | Some(b"NONE") => {}
            Some(other) => return Err(unsupported(name, String::from_utf8_lossy(other), "float caches are")),
        }
    }
    let names = ["attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight"];
    for (at, name) in (10..).zip(names) {
        if cx.node.inputs.get(at).copied().flatten().is_some() {
            return Err(unsupported(name, "given", "this input is not"));
        }
    }
    let heads = |name: &str| -> Result<usize, BuildError> {
        let count = attributes.int(name)?;
        let positive = usize::try_from(count).ok().filter(|&n| n > 0);
        positive.ok_or_else(|| unsupported(name, count, "it is a positive number of heads"))
    };
    let window = match attributes.int_or("local_window_size", -1)? {
        -1 => None,
        // A window holds the query's own place.
        size if size > 0 => Some(size - 1),
        other => return Err(unsupported("local_window_size", other, "-1 and positive numbers are")),
    };
    // 0 stands for the default.
    let scale = attributes.opt_float("scale")?.filter(|&scale| scale != 0.0);
    let core = Core {
        heads: heads("num_heads")?,
        kv_heads: heads("kv_num_heads")?,
        scale,
        softcap: attributes.float_or("softcap", 0.0)?,
        causal: attributes.int_or("causal", 1)? != 0,
        left: window,
    };
    if !core.heads.is_multiple_of(core.kv_heads) {
        return Err(unsupported("num_heads", core.heads, "it is a multiple of kv_num_heads"));
    }
    Ok(Box::new(GroupQuery {
        core,
        rotary: attributes.int_or("do_rotary", 0)? != 0,
        interleaved: attributes.int_or("rotary_interleaved", 0)? != 0,
    }))
}

impl Kernel for GroupQuery {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16], T => self.attend::<T>(cx),
            _ => Err(wrong_type(cx, 0, "FLOAT, FLOAT16 or BFLOAT16")))
    }
}

/// Extents, and where each batch entry stands.
struct Call {
    batch: usize,
    tokens: usize,
    size: usize,
    /// Rows of each entry before the new ones.
    past: Vec<usize>,
    /// Rows of each entry with the new ones.
    valid: Vec<usize>,
    /// Rows of the past's tensor, and of the present's.
    rows: (usize, usize),
}

impl GroupQuery {
    fn attend<T: Real>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let Core { heads, kv_heads, .. } = self.core;
        let [q, k, v] = self.split::<T>(cx)?;
        let call = self.call(cx, &q)?;
        let shape = |count: usize| [call.batch, call.tokens, count * call.size];
        if q.shape() != shape(heads) || k.shape() != shape(kv_heads) || v.shape() != shape(kv_heads) {
            return Err(misfit(&[&q, &k, &v]));
        }
        let ids = integers::opt_list(cx, 9)?;
        if ids.as_ref().is_some_and(|ids| ids.len() != call.batch * call.tokens) {
            return Err(KernelError::Other("position_ids is [batch, sequence]".into()));
        }
        let (q, k) = match self.rotary {
            true => (
                self.rotate::<T>(cx, &q, heads, &call, ids.as_ref())?,
                self.rotate::<T>(cx, &k, kv_heads, &call, ids.as_ref())?,
            ),
            false => (q, k),
        };
        let keys = self.append::<T>(cx, 3, &k, &call)?;
        let values = self.append::<T>(cx, 4, &v, &call)?;
        let out = self.core.attend::<T>(cx, &q, (&keys, &values), &call.past, &call.valid)?;
        cx.set(0, out);
        for (index, present) in [(1, keys), (2, values)] {
            if cx.wants(index) {
                cx.set(index, present);
            }
        }
        Ok(())
    }

    /// Queries, keys and values, each [batch, tokens, heads * size].
    fn split<T: Real>(&self, cx: &mut RunCx<'_>) -> Result<[Tensor; 3], KernelError> {
        let Core { heads, kv_heads, .. } = self.core;
        let q = cx.dense(0)?;
        if cx.opt_tensor(1)?.is_some() {
            let (k, v) = (cx.dense(1)?, cx.dense(2)?);
            if k.dtype() != T::DTYPE || v.dtype() != T::DTYPE {
                return Err(wrong_type(cx, 1, "the queries' type"));
            }
            return Ok([q, k, v]);
        }
        let &[batch, tokens, width] = q.shape() else { return Err(misfit(&[&q])) };
        let all = heads + 2 * kv_heads;
        if width % all != 0 {
            return Err(misfit(&[&q]));
        }
        let size = width / all;
        let from = q.as_slice::<T>()?;
        let mut part = |first: usize, count: usize| -> Result<Tensor, KernelError> {
            let mut to: TensorMut = cx.alloc(T::DTYPE, &[batch, tokens, count * size])?;
            let rows = from.chunks_exact(width.max(1)).map(|row| &row[first * size..(first + count) * size]);
            copy::runs(to.elements_mut::<T>(), rows, copy::Purpose::Kernel, cx.ledger());
            Ok(to.freeze())
        };
        Ok([part(0, heads)?, part(heads, kv_heads)?, part(heads + kv_heads, kv_heads)?])
    }

    fn call(&self, cx: &RunCx<'_>, q: &Tensor) -> Result<Call, KernelError> {
        let Core { heads, kv_heads, .. } = self.core;
        let &[batch, tokens, width] = q.shape() else { return Err(misfit(&[q])) };
        let size = width / heads;
        let past = cx.opt_tensor(3)?;
        let rows = match past.map(Tensor::shape) {
            None => 0,
            Some(&[b, h, rows, s]) if (b, h, s) == (batch, kv_heads, size) && width % heads == 0 => rows,
            Some(_) => return Err(misfit(&[q, cx.tensor(3)?])),
        };
        let missing = |index| KernelError::MissingInput { index };
        let lengths = integers::opt_list(cx, 5)?.ok_or_else(|| missing(5))?;
        let total = integers::opt_list(cx, 6)?.ok_or_else(|| missing(6))?;
        let high = i64::try_from(rows + tokens).unwrap_or(i64::MAX);
        let within = |what, value: i64, low: i64| {
            let fits = usize::try_from(value).ok().filter(|_| (low..=high).contains(&value));
            fits.ok_or(KernelError::Range { what, value, low, high })
        };
        let new = i64::try_from(tokens).unwrap_or(i64::MAX);
        let &[total] = &total[..] else {
            return Err(KernelError::Other("total_sequence_length is one number".into()));
        };
        let total = within("total_sequence_length", total, new)?;
        if lengths.len() != batch {
            return Err(KernelError::Other(format!(
                "seqlens_k has {} elements; the batch has {batch}",
                lengths.len()
            )));
        }
        // The first prompt may be shorter in some entries; all others end with the new tokens.
        let prompt = total == tokens;
        let mut call =
            Call { batch, tokens, size, past: vec![], valid: vec![], rows: (rows, rows.max(total)) };
        for &length in &lengths {
            let low = if prompt { 1 } else { new };
            let valid = within("seqlens_k + 1", length.saturating_add(1), low)?;
            call.past.push(if prompt { 0 } else { valid - tokens });
            call.valid.push(if prompt { tokens } else { valid });
        }
        if call.valid.iter().any(|&valid| valid > total) {
            return Err(KernelError::Other("total_sequence_length is the largest seqlens_k + 1".into()));
        }
        Ok(call)
    }

    /// The heads of `x` [batch, tokens, heads * size], each pair rotated by its position's angle.
    fn rotate<T: Real>(
        &self,
        cx: &mut RunCx<'_>,
        x: &Tensor,
        heads: usize,
        call: &Call,
        ids: Option<&Ints>,
    ) -> Result<Tensor, KernelError> {
        let (cos, sin) = (cx.dense(7)?, cx.dense(8)?);
        let &[positions, half] = cos.shape() else { return Err(misfit(&[&cos])) };
        if sin.shape() != cos.shape() || 2 * half > call.size {
            return Err(misfit(&[&cos, &sin]));
        }
        let mut out = cx.alloc(T::DTYPE, x.shape())?;
        let (from, cos, sin) = (x.as_slice::<T>()?, cos.as_slice::<T>()?, sin.as_slice::<T>()?);
        let size = call.size.max(1);
        let (step, apart) = if self.interleaved { (2, 1) } else { (1, half) };
        let rows = out.elements_mut::<T>().chunks_exact_mut(size).zip(from.chunks_exact(size));
        for (at, (to, from)) in rows.enumerate() {
            let token = at / heads;
            let (entry, place) = (token / call.tokens, token % call.tokens);
            let position = match ids {
                Some(ids) => usize::try_from(ids[token]).unwrap_or(usize::MAX),
                None => call.past[entry] + place,
            };
            if position >= positions {
                return Err(KernelError::Range {
                    what: "a position",
                    value: i64::try_from(position).unwrap_or(i64::MAX),
                    low: 0,
                    high: i64::try_from(positions).unwrap_or(i64::MAX) - 1,
                });
            }
            let angles = position * half..(position + 1) * half;
            for (i, (c, s)) in cos[angles.clone()].iter().zip(&sin[angles]).enumerate() {
                let (first, second) = (i * step, i * step + apart);
                let (a, b, c, s) = (from[first].widen(), from[second].widen(), c.widen(), s.widen());
                to[first] = T::narrow(c * a - s * b);
                to[second] = T::narrow(s * a + c * b);
            }
            to[2 * half..].iter_mut().zip(&from[2 * half..]).for_each(|(to, from)| *to = *from);
        }
        Ok(out.freeze())
    }

    /// The cache `index` with the rows of `new` [batch, tokens, heads * size].
    fn append<T: Real>(
        &self,
        cx: &mut RunCx<'_>,
        index: usize,
        new: &Tensor,
        call: &Call,
    ) -> Result<Tensor, KernelError> {
        let heads = self.core.kv_heads;
        let &Call { batch, tokens, size, rows: (past, present), .. } = call;
        let from = new.dense_bytes().unwrap_or(&[]);
        let row = size * size_of::<T>();
        let of = move |run: usize| {
            let (b, h) = (run / heads, run % heads);
            (0..tokens)
                .map(move |token| ((b * tokens + token) * heads + h) * row)
                .map(move |at| &from[at..at + row])
        };
        let even = call.past.windows(2).all(|pair| pair[0] == pair[1]);
        let given = cx.opt_tensor(index)?.map(|past| (past.dtype(), Shape::from_slice(past.shape())));
        match &given {
            Some((dtype, shape)) if *dtype != T::DTYPE || shape[..] != [batch, heads, past, size] => {
                return Err(misfit(&[cx.tensor(index)?, new]));
            }
            _ => {}
        }
        let start = call.past.first().copied().unwrap_or(0);
        if given.is_some() && even && (present == past || start == past) {
            let mut slot = match present == past {
                true => cx.append_over(index, 2, start, tokens)?,
                false => cx.append(index, 2, tokens)?,
            };
            (0..batch * heads).for_each(|run| slot.fill(run, of(run)));
            return cx.commit(slot, T::DTYPE, &[batch, heads], &[size]);
        }
        // Entries of different lengths: each has its new rows at a place of its own.
        let before = given.map(|_| cx.dense(index)).transpose()?;
        let before = before.as_ref().and_then(Tensor::dense_bytes).unwrap_or(&[]);
        let mut out = cx.alloc(T::DTYPE, &[batch, heads, present, size])?;
        let zeros = vec![0u8; present * row];
        for (run, to) in out.bytes_mut().chunks_exact_mut((present * row).max(1)).enumerate() {
            let (kept, end) = (call.past[run / heads] * row, (call.past[run / heads] + tokens) * row);
            let old = before.get(run * past * row..(run + 1) * past * row).unwrap_or(&[]);
            let rest = old.get(end..).unwrap_or(&[]);
            let filled = end + rest.len();
            let parts =
                [&old[..kept.min(old.len())]].into_iter().chain(of(run)).chain([rest, &zeros[filled..]]);
            copy::runs(to, parts, copy::Purpose::Kernel, cx.ledger());
        }
        Ok(out.freeze())
    }
}

fn misfit(tensors: &[&Tensor]) -> KernelError {
    KernelError::Shape {
        what: "queries, keys and values are [batch, sequence, heads * size], caches [batch, kv heads, rows, size], angles \
               [positions, pairs]",
        shapes: tensors.iter().map(|t| Shape::from_slice(t.shape())).collect(),
    }
}
