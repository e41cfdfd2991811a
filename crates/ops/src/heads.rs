//! Attention with as many heads of keys as of queries, from its definition, for operators of com.microsoft.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, KernelError, RunCx};

use crate::attributes::unsupported;
use crate::integers;
use crate::product::{add_scaled, dot};
use crate::reals::{input, misfit, opt_input, written};

/// Elements [batch, heads, rows, size].
#[derive(Clone, Debug)]
pub(crate) struct Heads {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) rows: usize,
    pub(crate) size: usize,
    pub(crate) values: Vec<f64>,
}

impl Heads {
    /// From rows [batch, rows, `width`], of which heads of `size` elements begin at `first`, `apart` from each other, with
    /// a bias for each element of a row.
    pub(crate) fn of_rows(
        [batch, rows, heads, size]: [usize; 4],
        values: &[f64],
        (width, first, apart): (usize, usize, usize),
        bias: Option<&[f64]>,
    ) -> Heads {
        let mut out = Vec::with_capacity(batch * heads * rows * size);
        for b in 0..batch {
            for head in 0..heads {
                for row in 0..rows {
                    let from = first + head * apart;
                    let row = &values[(b * rows + row) * width..][from..from + size];
                    let bias = |at: usize| bias.map_or(0.0, |bias| bias[head * size + at]);
                    out.extend(row.iter().enumerate().map(|(at, v)| v + bias(at)));
                }
            }
        }
        Heads { batch, heads, rows, size, values: out }
    }

    /// From [batch, heads, rows, size] elements as they are.
    pub(crate) fn of_shape(shape: &[usize], values: Vec<f64>) -> Result<Heads, KernelError> {
        match *shape {
            [batch, heads, rows, size] => Ok(Heads { batch, heads, rows, size, values }),
            _ => Err(misfit("keys and values of heads are [batch, heads, rows, size]", &[shape])),
        }
    }

    /// The rows of `past` and then these.
    pub(crate) fn behind(self, past: &Heads) -> Result<Heads, KernelError> {
        let of = |h: &Heads| [h.batch, h.heads, h.size];
        if of(&self) != of(past) {
            let shape = |h: &Heads| [h.batch, h.heads, h.rows, h.size];
            return Err(misfit(
                "past and new rows differ in their number only",
                &[&shape(past), &shape(&self)],
            ));
        }
        let (old, new) = ((past.rows * self.size).max(1), (self.rows * self.size).max(1));
        let mut values = Vec::with_capacity(self.values.len() + past.values.len());
        for head in 0..self.batch * self.heads {
            values.extend_from_slice(past.values.get(head * old..(head + 1) * old).unwrap_or(&[]));
            values.extend_from_slice(self.values.get(head * new..(head + 1) * new).unwrap_or(&[]));
        }
        Ok(Heads { rows: self.rows + past.rows, values, ..self })
    }

    fn row(&self, head: usize, row: usize) -> &[f64] {
        &self.values[(head * self.rows + row) * self.size..][..self.size]
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::from_slice(&[self.batch, self.heads, self.rows, self.size])
    }
}

/// What the attributes say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) heads: usize,
    pub(crate) causal: bool,
    /// Nothing, or 0: one over the root of a head's size.
    scale: f64,
    /// What is added to scores that a mask leaves out.
    filter: f64,
}

impl Rules {
    pub(crate) fn read(cx: &BuildCx<'_>) -> Result<Rules, BuildError> {
        let attributes = &cx.node.attributes;
        let heads = attributes.int("num_heads")?;
        let positive = usize::try_from(heads).ok().filter(|&n| n > 0);
        Ok(Rules {
            heads: positive
                .ok_or_else(|| unsupported("num_heads", heads, "it is a positive number of heads"))?,
            causal: attributes.int_or("unidirectional", 0)? != 0,
            scale: f64::from(attributes.float_or("scale", 0.0)?),
            filter: f64::from(attributes.float_or("mask_filter_value", -10000.0)?),
        })
    }
}

/// Keys that are left out, as an INT32 input says.
pub(crate) struct Mask {
    kept: Kept,
    filter: f64,
}

enum Kept {
    All,
    /// From, to for each batch entry.
    Ranges(Vec<(i64, i64)>),
    /// Not 0 for those kept: of each batch entry, of each query where there are as many rows.
    Each {
        marks: Vec<i64>,
        queries: usize,
        keys: usize,
    },
}

impl Mask {
    /// The mask in input `index` for so many batch entries, queries and keys.
    pub(crate) fn read(
        cx: &RunCx<'_>,
        index: usize,
        rules: &Rules,
        [batch, queries, keys]: [usize; 3],
    ) -> Result<Mask, KernelError> {
        let Some(marks) = integers::opt_list(cx, index)? else {
            return Ok(Mask { kept: Kept::All, filter: rules.filter });
        };
        let shape = Shape::from_slice(cx.tensor(index)?.shape());
        let kept = match *shape {
            [len] if len == batch => Kept::Ranges(marks.iter().map(|&end| (0, end)).collect()),
            [len] if len == 2 * batch => {
                Kept::Ranges(marks[batch..].iter().copied().zip(marks[..batch].iter().copied()).collect())
            }
            [b, k] if b == batch && k == keys => {
                Kept::Each { marks: marks.into_iter().collect(), queries: 1, keys }
            }
            [b, q, k] if b == batch && q == queries && k == keys => {
                Kept::Each { marks: marks.into_iter().collect(), queries, keys }
            }
            _ => {
                return Err(misfit(
                    "a mask is [batch], [2 * batch], [batch, keys] or [batch, queries, keys]",
                    &[&shape, &[batch, queries, keys]],
                ));
            }
        };
        Ok(Mask { kept, filter: rules.filter })
    }

    fn of(&self, b: usize, query: usize, key: usize) -> f64 {
        let kept = match &self.kept {
            Kept::All => true,
            Kept::Ranges(ranges) => {
                let key = key as i64;
                ranges[b].0 <= key && key < ranges[b].1
            }
            Kept::Each { marks, queries, keys } => marks[(b * queries + query % queries) * keys + key] != 0,
        };
        if kept { 0.0 } else { self.filter }
    }
}

/// What is added to the scores: [batch or 1, heads or 1, queries, keys].
pub(crate) struct ScoreBias {
    shape: [usize; 4],
    values: Vec<f64>,
}

impl ScoreBias {
    pub(crate) fn read(
        cx: &RunCx<'_>,
        index: usize,
        [batch, heads, queries, keys]: [usize; 4],
    ) -> Result<Option<ScoreBias>, KernelError> {
        let Some((_, shape, values)) = opt_input(cx, index)? else { return Ok(None) };
        match *shape {
            [b, h, q, k] if (b == 1 || b == batch) && (h == 1 || h == heads) && [q, k] == [queries, keys] => {
                Ok(Some(ScoreBias { shape: [b, h, q, k], values }))
            }
            _ => Err(misfit(
                "the bias of scores is [batch or 1, heads or 1, queries, keys]",
                &[&shape, &[batch, heads, queries, keys]],
            )),
        }
    }

    fn of(&self, b: usize, head: usize, query: usize, key: usize) -> f64 {
        let [bs, hs, qs, ks] = self.shape;
        self.values[(((b % bs) * hs + head % hs) * qs + query) * ks + key]
    }
}

/// Rows [batch, queries, heads * size] of values, weighted.
pub(crate) fn attend(
    cx: &RunCx<'_>,
    rules: &Rules,
    [q, k, v]: [&Heads; 3],
    mask: &Mask,
    bias: Option<&ScoreBias>,
) -> Result<(Shape, Vec<f64>), KernelError> {
    let fits = |h: &Heads| (h.batch, h.heads) == (q.batch, q.heads);
    if !fits(k) || !fits(v) || k.rows != v.rows || k.size != q.size {
        return Err(misfit(
            "queries, keys and values have one number of heads, keys and values one of rows",
            &[&q.shape(), &k.shape(), &v.shape()],
        ));
    }
    let scale = if rules.scale == 0.0 { 1.0 / (q.size as f64).sqrt() } else { rules.scale };
    let width = q.heads * v.size;
    let mut out = vec![0.0; q.batch * q.rows * width];
    let mut scores = vec![0.0; k.rows];
    for head in 0..q.batch * q.heads {
        cx.cancel().check()?;
        let (b, h) = (head / q.heads, head % q.heads);
        for i in 0..q.rows {
            for (j, score) in scores.iter_mut().enumerate() {
                *score = dot(q.row(head, i), k.row(head, j)) * scale
                    + mask.of(b, i, j)
                    + bias.map_or(0.0, |bias| bias.of(b, h, i, j));
                if rules.causal && j + q.rows > i + k.rows {
                    *score = f64::from(f32::MIN);
                }
            }
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scores.iter_mut().for_each(|score| *score = (*score - greatest).exp());
            let sum: f64 = scores.iter().sum();
            let to = &mut out[(b * q.rows + i) * width + h * v.size..][..v.size];
            for (j, score) in scores.iter().enumerate() {
                add_scaled(to, score / sum, v.row(head, j));
            }
        }
    }
    Ok((Shape::from_slice(&[q.batch, q.rows, width]), out))
}

/// Columns of queries, keys and values, each for all heads.
pub(crate) type Widths = [usize; 3];

/// The last part of `Attention` and `QAttention`: from rows of queries, keys and values side by side, past rows in input
/// `past` and a mask in input `mask`. Sets outputs 0 and 1.
pub(crate) fn packed(
    cx: &mut RunCx<'_>,
    rules: &Rules,
    (dtype, [batch, rows]): (DType, [usize; 2]),
    (values, widths): (&[f64], Widths),
    [mask, past, bias]: [usize; 3],
) -> Result<(), KernelError> {
    let width: usize = widths.iter().sum();
    if widths.iter().any(|w| w % rules.heads != 0) || widths[0] != widths[1] {
        return Err(misfit(
            "queries and keys are as wide, and all of whole heads",
            &[&widths, &[rules.heads]],
        ));
    }
    let mut first = 0;
    let [q, mut k, mut v] = widths.map(|own| {
        let size = own / rules.heads;
        let part = Heads::of_rows([batch, rows, rules.heads, size], values, (width, first, size), None);
        first += own;
        part
    });
    if let Some((_, shape, values)) = opt_input(cx, past)? {
        let [2, rest @ ..] = &shape[..] else {
            return Err(misfit("the past is [2, batch, heads, rows, size]", &[&shape]));
        };
        let (keys, of_values) = values.split_at(values.len() / 2);
        k = k.behind(&Heads::of_shape(rest, keys.into())?)?;
        v = v.behind(&Heads::of_shape(rest, of_values.into())?)?;
    }
    let mask = Mask::read(cx, mask, rules, [batch, rows, k.rows])?;
    let bias = ScoreBias::read(cx, bias, [batch, rules.heads, rows, k.rows])?;
    let (shape, out) = attend(cx, rules, [&q, &k, &v], &mask, bias.as_ref())?;
    let out = written(cx, dtype, &shape, &out)?;
    cx.set(0, out);
    if cx.output_count() > 1 && cx.wants(1) {
        let mut shape = Shape::from_slice(&[2]);
        shape.extend(k.shape());
        if k.size != v.size {
            return Err(misfit("keys and values of a present are as wide", &[&k.shape(), &v.shape()]));
        }
        k.values.extend_from_slice(&v.values);
        let present = written(cx, dtype, &shape, &k.values)?;
        cx.set(1, present);
    }
    Ok(())
}

/// Input `index` as rows [batch, rows, width].
pub(crate) fn rows(cx: &RunCx<'_>, index: usize) -> Result<(DType, [usize; 3], Vec<f64>), KernelError> {
    let (dtype, shape, values) = input(cx, index)?;
    let extents = <[usize; 3]>::try_from(&shape[..])
        .map_err(|_| misfit("the input is [batch, sequence, width]", &[&shape]))?;
    Ok((dtype, extents, values))
}

/// A tensor of heads as an output.
pub(crate) fn set(cx: &mut RunCx<'_>, output: usize, dtype: DType, heads: &Heads) -> Result<(), KernelError> {
    if output < cx.output_count() && cx.wants(output) {
        let value: Tensor = written(cx, dtype, &heads.shape(), &heads.values)?;
        cx.set(output, value);
    }
    Ok(())
}
