//! Attention and rotary embedding. A cache grows: `present` is as long as `past` and what is new together.

use heirloom_mem::DType;

use super::cx::better;
use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Fact, TensorFact};

pub(super) const RULES: &[Rule] = &[("Attention", attention), ("RotaryEmbedding", rotary)];

pub(super) const MICROSOFT: &[Rule] = &[
    ("Attention", projected),
    ("EmbedLayerNormalization", embed),
    ("GroupQueryAttention", group_query),
    ("MultiHeadAttention", multi_head),
    ("QAttention", projected),
    ("RotaryEmbedding", rotary),
];

/// Inputs rows and weights of queries, keys and values side by side.
fn projected(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.dims_of_rank(0, 3)?;
    let width = match cx.opt_ints("qkv_hidden_sizes") {
        Some(&[_, _, width]) => Some(Expr::number(width)),
        _ => {
            let all = cx.dims(1).ok().and_then(|dims| dims.last()?.clone());
            all.and_then(|all| all.exact_quotient(&Expr::number(3)))
        }
    };
    let dims = vec![dims[0].clone(), dims[1].clone(), width];
    // The bias has the type of the result where the rows are codes.
    let dtype = cx.dtype(2).or_else(|_| cx.dtype(0))?;
    cx.set(0, dtype, Some(dims));
    Ok(())
}

/// Inputs ids, segments, word embedding …, gamma.
fn embed(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(5)?;
    let (ids, words) = (cx.dims_of_rank(0, 2)?, cx.dims_of_rank(2, 2)?);
    let (batch, full) = (ids[0].clone(), vec![ids[0].clone(), ids[1].clone(), words[1].clone()]);
    cx.set(0, dtype, Some(full.clone()));
    cx.set(1, DType::Int32, Some(vec![batch]));
    cx.set(2, dtype, Some(full));
    Ok(())
}

pub(super) const PREVIEW: &[Rule] = &[("FlexAttention", flex)];

/// Inputs query, key, value, all of four axes.
fn flex(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let q = heads(cx, 0, None)?;
    let v = heads(cx, 2, None)?;
    cx.set(0, dtype, Some(vec![q.batch, q.heads, q.length, v.size]));
    Ok(())
}

fn rotary(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set_fact(0, Fact::tensor(dtype, dims));
    Ok(())
}

/// Batch, heads, length and head size of queries, keys or values in either form.
struct Heads {
    batch: Dim,
    heads: Dim,
    length: Dim,
    size: Dim,
}

/// Reads 4-D `[batch, heads, length, size]` or 3-D `[batch, length, heads*size]`.
fn heads(cx: &Cx<'_>, input: usize, count: Option<i64>) -> Result<Heads, Stop> {
    match cx.dims(input)? {
        [batch, heads, length, size] => Ok(Heads {
            batch: batch.clone(),
            heads: heads.clone(),
            length: length.clone(),
            size: size.clone(),
        }),
        [batch, length, width] => {
            let count = count.map(Expr::number);
            let size = width.as_ref().and_then(|width| width.exact_quotient(count.as_ref()?));
            Ok(Heads { batch: batch.clone(), heads: count, length: length.clone(), size })
        }
        _ => Err(cx.refuse(input, "the operator takes 3 or 4 axes".into())),
    }
}

fn sum(a: &Dim, b: &Dim) -> Dim {
    a.as_ref()?.plus(b.as_ref()?)
}

/// What a cache becomes: the length of input `past`, if there is one, and the new rows.
fn present(cx: &mut Cx<'_>, output: usize, past: usize, new: &Heads) -> Result<Dim, Stop> {
    let old = cx.dims(past).ok().filter(|dims| dims.len() == 4);
    let total = match (cx.has(past), old) {
        (true, Some(old)) => sum(&old[2], &new.length),
        (true, None) => None,
        (false, _) => new.length.clone(),
    };
    let dtype = cx.dtype(past).or_else(|_| cx.dtype(output)).or_else(|_| cx.dtype(0))?;
    let pick = |own: &Dim, axis: usize| better(own.clone(), old.and_then(|old| old[axis].clone()));
    let dims = vec![pick(&new.batch, 0), pick(&new.heads, 1), total.clone(), pick(&new.size, 3)];
    cx.set(output, dtype, Some(dims));
    Ok(total)
}

/// Inputs query, key, value, mask, past key, past value; outputs result, present key, present value, scores.
fn attention(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let Some(dims) = dims else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let q = heads(cx, 0, cx.opt_int("q_num_heads"))?;
    let kv = cx.opt_int("kv_num_heads");
    let (Ok(k), Ok(v)) = (heads(cx, 1, kv), heads(cx, 2, kv)) else { return Err(Stop::Unknown) };
    let result = match dims.len() {
        4 => vec![q.batch.clone(), q.heads.clone(), q.length.clone(), v.size.clone()],
        _ => {
            let width = q.heads.as_ref().and_then(|heads| heads.times(v.size.as_ref()?));
            vec![q.batch.clone(), q.length.clone(), width]
        }
    };
    cx.set(0, dtype, Some(result));
    let total = present(cx, 1, 4, &k)?;
    present(cx, 2, 5, &v)?;
    cx.set(3, dtype, Some(vec![q.batch, q.heads, q.length, total]));
    Ok(())
}

/// Inputs query (or all three packed), key, value, past key, past value, …; the cache is `[batch, heads, length, size]`.
fn group_query(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = dims.filter(|dims| dims.len() == 3).ok_or(Stop::Unknown)?;
    let (q_heads, kv_heads) =
        (cx.opt_int("num_heads").ok_or(Stop::Unknown)?, cx.opt_int("kv_num_heads").ok_or(Stop::Unknown)?);
    let (q_count, kv_count) = (Expr::number(q_heads), Expr::number(kv_heads));
    let is_packed = !cx.has(1);
    let all = if is_packed {
        q_count.plus(&kv_count).and_then(|it| it.plus(&kv_count))
    } else {
        Some(q_count.clone())
    };
    let size = dims[2].as_ref().and_then(|width| width.exact_quotient(all.as_ref()?));
    let width = size.as_ref().and_then(|size| size.times(&q_count));
    cx.set(0, dtype, Some(vec![dims[0].clone(), dims[1].clone(), width]));
    for (output, past) in [(1, 3), (2, 4)] {
        let new = Heads {
            batch: dims[0].clone(),
            heads: Some(kv_count.clone()),
            length: dims[1].clone(),
            size: size.clone(),
        };
        // A cache whose buffer is shared has its capacity as its length: then nothing is known before a call.
        present(cx, output, past, &new)?;
    }
    Ok(())
}

fn multi_head(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let dims = dims.filter(|dims| dims.len() == 3).ok_or(Stop::Unknown)?;
    let width = cx.dims(2).ok().and_then(|v| match v {
        [_, _, width] => width.clone(),
        [_, heads, _, size] => heads.as_ref()?.times(size.as_ref()?),
        _ => None,
    });
    cx.set(0, dtype, Some(vec![dims[0].clone(), dims[1].clone(), width]));
    Ok(())
}
