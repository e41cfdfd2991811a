//! Attention over a cache in place: grouped queries share one read of their keys and values.
#![allow(unsafe_code)]

mod block;
mod job;
#[cfg(test)]
mod tests;

use half::{bf16, f16};
use heirloom_mem::{DType, Tensor, ViewError};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Team};

use heirloom_simd::{Isa, Portable};

use crate::lanes::{self, LaneElement};
use job::{Cut, Job, Shape, Sight};

/// ONNX `Attention` (opset 23 on) with past and present, causal or not, without a mask: the form of a decoder.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Attention",
    versions: (23, i64::MAX),
    rank: 10,
    accepts,
    build: |cx| Ok(Box::new(Attention::new(cx)?)),
};

fn accepts(cx: &BuildCx<'_>) -> bool {
    let given = |i: usize| cx.node.inputs.get(i).copied().flatten().is_some();
    let attributes = &cx.node.attributes;
    let zero = |name| attributes.float_or(name, 0.0).is_ok_and(|v| v == 0.0);
    let none = |name| attributes.int_or(name, -1).is_ok_and(|v| v == -1);
    cx.plain_inputs()
        && [0, 1, 2, 4, 5].into_iter().all(given)
        && !given(3)
        && !given(6)
        && cx.node.outputs.get(3).copied().flatten().is_none()
        && zero("softcap")
        && none("right_window_size")
}

struct Attention {
    q_heads: Option<usize>,
    kv_heads: Option<usize>,
    scale: Option<f32>,
    causal: bool,
    left: Option<usize>,
    isa: Isa,
}

impl Attention {
    fn new(cx: &BuildCx<'_>) -> Result<Attention, BuildError> {
        let attributes = &cx.node.attributes;
        let count = |name: &str| match attributes.opt_int(name)? {
            None => Ok(None),
            Some(n) => {
                usize::try_from(n).ok().filter(|&n| n > 0).map(Some).ok_or_else(|| BuildError::Unsupported {
                    name: name.into(),
                    value: n.to_string(),
                    reason: "a positive number of heads".into(),
                })
            }
        };
        Ok(Attention {
            q_heads: count("q_num_heads")?,
            kv_heads: count("kv_num_heads")?,
            scale: attributes.opt_float("scale")?,
            causal: attributes.int_or("is_causal", 0)? != 0,
            left: usize::try_from(attributes.int_or("left_window_size", -1)?).ok(),
            isa: lanes::selected()?,
        })
    }

    fn typed<T: LaneElement>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let q = cx.dense(0)?;
        let (new_k, new_v) = (cx.dense(1)?, cx.dense(2)?);
        let split = |t: &Tensor, heads: Option<usize>| split(t, heads).ok_or_else(|| misfit(&[t]));
        let (batch, q_heads, tokens, head_k) = split(&q, self.q_heads)?;
        let (k_batch, kv_heads, rows, k_size) = split(&new_k, self.kv_heads)?;
        let (v_batch, v_heads, v_rows, head_v) = split(&new_v, self.kv_heads)?;
        let fits = |past: &Tensor, size| matches!(past.shape(), &[b, h, _, d] if b == batch && h == kv_heads && d == size);
        let (past_k, past_v) = (cx.tensor(4)?, cx.tensor(5)?);
        if k_size != head_k
            || (k_batch, kv_heads, rows) != (v_batch, v_heads, v_rows)
            || k_batch != batch
            || kv_heads == 0
            || q_heads % kv_heads != 0
            || !fits(past_k, head_k)
            || !fits(past_v, head_v)
            || past_k.shape()[2] != past_v.shape()[2]
        {
            return Err(misfit(&[&q, &new_k, &new_v, past_k, past_v]));
        }
        let past = past_k.shape()[2];
        let tokens_first = q.shape().len() == 3;
        let keys = append::<T>(cx, 4, &new_k, kv_heads)?;
        let values = append::<T>(cx, 5, &new_v, kv_heads)?;
        let shape =
            Shape { batch, tokens, q_heads, kv_heads, head_k, head_v, positions: past + rows, tokens_first };
        let mut out_shape = heirloom_mem::Shape::from_slice(q.shape());
        if let Some(last) = out_shape.last_mut() {
            *last = if tokens_first { q_heads * head_v } else { head_v };
        }
        let mut out = cx.alloc(T::DTYPE, &out_shape)?;
        let team = cx.team();
        let lanes = lanes::count(self.isa);
        let mut scratch = cx.scratch(job::scratch_len(&shape, lanes, team.threads()) * size_of::<f32>());
        let job = Job {
            shape,
            sight: Sight { causal: self.causal, left: self.left, past },
            scale: self.scale.unwrap_or_else(|| 1.0 / (head_k as f32).sqrt()),
            q: q.as_slice::<T>()?,
            keys: &keys,
            values: &values,
            cancel: cx.cancel(),
        };
        let to = out.elements_mut::<T>();
        if !to.is_empty() {
            compute(self.isa, &job, to, scratch.elements_mut(), team)?;
        }
        cx.release(scratch);
        cx.cancel().check()?;
        cx.set(0, out.freeze());
        for (index, present) in [(1, keys), (2, values)] {
            if cx.wants(index) {
                cx.set(index, present);
            }
        }
        Ok(())
    }
}

impl Kernel for Attention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        match cx.tensor(0)?.dtype() {
            DType::Float => self.typed::<f32>(cx),
            DType::Float16 => self.typed::<f16>(cx),
            DType::BFloat16 => self.typed::<bf16>(cx),
            other => Err(KernelError::InputType {
                index: 0,
                expected: "FLOAT, FLOAT16 or BFLOAT16".into(),
                actual: other.name().into(),
            }),
        }
    }
}

/// Batch, heads, tokens and head size of `[batch, tokens, heads * size]` or `[batch, heads, tokens, size]`.
fn split(tensor: &Tensor, heads: Option<usize>) -> Option<(usize, usize, usize, usize)> {
    match (tensor.shape(), heads) {
        (&[b, s, width], Some(h)) if width % h == 0 && width > 0 => Some((b, h, s, width / h)),
        (&[b, h, s, d], expected) if expected.is_none_or(|e| e == h) && d > 0 => Some((b, h, s, d)),
        _ => None,
    }
}

fn misfit(tensors: &[&Tensor]) -> KernelError {
    KernelError::Shape {
        what: "queries, keys, values and caches must agree in batch, heads and head size",
        shapes: tensors.iter().map(|t| heirloom_mem::Shape::from_slice(t.shape())).collect(),
    }
}

/// The cache `index` with the rows of `new` behind it.
fn append<T: LaneElement>(
    cx: &mut RunCx<'_>,
    index: usize,
    new: &Tensor,
    heads: usize,
) -> Result<Tensor, KernelError> {
    let past = cx.tensor(index)?;
    let (dtype, batch, size) = (past.dtype(), past.shape()[0], past.shape()[3]);
    if dtype != T::DTYPE || new.dtype() != T::DTYPE {
        let actual = format!("{} beside {} new rows", dtype.name(), new.dtype().name());
        return Err(KernelError::InputType {
            index,
            expected: format!("{} as the queries", T::DTYPE),
            actual,
        });
    }
    let tokens_first = new.shape().len() == 3;
    let tokens = new.shape()[if tokens_first { 1 } else { 2 }];
    let row_bytes = size * size_of::<T>();
    let bytes = new.dense_bytes().unwrap_or(&[]);
    let mut slot = cx.append(index, 2, tokens)?;
    for run in 0..batch * heads {
        let (b, h) = (run / heads, run % heads);
        for token in 0..tokens {
            let from = if tokens_first { (b * tokens + token) * heads + h } else { run * tokens + token };
            slot.write_row(run, token, &bytes[from * row_bytes..(from + 1) * row_bytes]);
        }
    }
    cx.commit(slot, dtype, &[batch, heads], &[size])
}

fn compute<T: LaneElement>(
    isa: Isa,
    job: &Job<'_, T>,
    out: &mut [T],
    scratch: &mut [f32],
    team: &dyn Team,
) -> Result<(), ViewError> {
    let n = lanes::count(isa);
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(s) => job::run(n, job, out, scratch, team, |job, cut, task, w, p| {
            // SAFETY: the token proves the features.
            unsafe { one_avx2(s, job, cut, task, w, p) }
        }),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(s) => job::run(n, job, out, scratch, team, |job, cut, task, w, p| {
            // SAFETY: the token proves the features.
            unsafe { one_avx512(s, job, cut, task, w, p) }
        }),
        _ => job::run(n, job, out, scratch, team, |job, cut, task, w, p| {
            job::one(Portable, job, cut, task, w, p)
        }),
    }
}

macro_rules! compiled_for {
    ($name:ident, $token:ident, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $name<T: LaneElement>(
            s: heirloom_simd::$token,
            job: &Job<'_, T>,
            cut: &Cut,
            task: usize,
            workspace: &mut [f32],
            partial: &mut [f32],
        ) -> Result<(), ViewError> {
            job::one(s, job, cut, task, workspace, partial)
        }
    };
}
compiled_for!(one_avx2, Avx2, "avx2,fma,f16c");
compiled_for!(one_avx512, Avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c");
