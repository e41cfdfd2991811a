//! [`RotaryEmbedding`](https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html): pairs of each head's elements rotated by the angle of
//! their position. Pairs are neighbours (`interleaved`) or lie half a head apart.

use half::{bf16, f16};
use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers;
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RotaryEmbedding",
    versions: (23, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Rotary {
    heads: usize,
    /// Elements of a head that are rotated; 0 is all.
    dim: usize,
    interleaved: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["num_heads", "rotary_embedding_dim", "interleaved"])?;
    let attributes = &cx.node.attributes;
    let count = |name: &str| -> Result<usize, BuildError> {
        let value = attributes.int_or(name, 0)?;
        usize::try_from(value).map_err(|_| unsupported(name, value, "it is a number of elements"))
    };
    let dim = count("rotary_embedding_dim")?;
    if dim % 2 != 0 {
        return Err(unsupported("rotary_embedding_dim", dim, "pairs are rotated"));
    }
    let interleaved = attributes.int_or("interleaved", 0)? != 0;
    Ok(Box::new(Rotary { heads: count("num_heads")?, dim, interleaved }))
}

/// Where the rows of a `[batch, sequence, heads, size]` or `[batch, heads, sequence, size]` tensor lie.
pub(crate) struct Layout {
    pub(crate) batch: usize,
    pub(crate) sequence: usize,
    pub(crate) heads: usize,
    pub(crate) size: usize,
    /// Heads lie outside the sequence.
    pub(crate) heads_first: bool,
}

impl Rotary {
    fn layout(&self, shape: &[usize]) -> Result<Layout, KernelError> {
        match *shape {
            [batch, heads, sequence, size] if self.heads == 0 || self.heads == heads => {
                Ok(Layout { batch, sequence, heads, size, heads_first: true })
            }
            [batch, sequence, hidden] if self.heads != 0 && hidden % self.heads == 0 => {
                let size = hidden / self.heads;
                Ok(Layout { batch, sequence, heads: self.heads, size, heads_first: false })
            }
            _ => Err(KernelError::Shape {
                what: "the input is [batch, heads, sequence, size], or [batch, sequence, num_heads * size] with `num_heads`",
                shapes: vec![Shape::from_slice(shape)],
            }),
        }
    }
}

impl Kernel for Rotary {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => rotate::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn rotate<T: Real>(cx: &mut RunCx<'_>, node: &Rotary) -> Result<(), KernelError> {
    let (x, cos, sin) = (cx.dense(0)?, cx.dense(1)?, cx.dense(2)?);
    let layout = node.layout(x.shape())?;
    let dim = if node.dim == 0 { layout.size } else { node.dim };
    let half = dim / 2;
    let positions = integers::opt_list(cx, 3)?;
    let rows = angles(&layout, &cos, half, positions.is_some())?;
    if dim > layout.size || dim % 2 != 0 || cos.shape() != sin.shape() {
        return Err(KernelError::Shape {
            what: "cosines and sines have one shape and half as many columns as are rotated",
            shapes: [&x, &cos, &sin].map(|t| Shape::from_slice(t.shape())).into(),
        });
    }
    let turn = Turn { layout: &layout, dim, interleaved: node.interleaved };
    let out = turn.run::<T>(cx, &x, (&cos, &sin), |batch, place| {
        let token = batch * layout.sequence + place;
        match &positions {
            Some(ids) => Ok(crate::onnx::gather::places(&[ids[token]], rows)?[0]),
            None => Ok(token % rows.max(1)),
        }
    })?;
    cx.set(0, out);
    Ok(())
}

/// Which elements of each head are rotated.
pub(crate) struct Turn<'a> {
    pub(crate) layout: &'a Layout,
    /// The first elements of each head, an even number.
    pub(crate) dim: usize,
    pub(crate) interleaved: bool,
}

impl Turn<'_> {
    /// Every head of `x`, rotated by the angles in the row that `row` gives for its batch entry and place.
    pub(crate) fn run<T: Real>(
        &self,
        cx: &mut RunCx<'_>,
        x: &Tensor,
        (cos, sin): (&Tensor, &Tensor),
        row: impl Fn(usize, usize) -> Result<usize, KernelError>,
    ) -> Result<Tensor, KernelError> {
        let (layout, dim, half) = (self.layout, self.dim, self.dim / 2);
        let (from, cos, sin) = (x.as_slice::<T>()?, cos.as_slice::<T>()?, sin.as_slice::<T>()?);
        let mut out = cx.alloc(T::DTYPE, x.shape())?;
        let size = layout.size.max(1);
        let (step, apart) = if self.interleaved { (2, 1) } else { (1, half) };
        let mut watch = cx.cancel().watch();
        let heads = out.elements_mut::<T>().chunks_exact_mut(size).zip(from.chunks_exact(size));
        for (at, (to, from)) in heads.enumerate() {
            watch.pass(size)?;
            let (batch, place) = position(layout, at);
            let row = row(batch, place)?;
            let angle = row * half..(row + 1) * half;
            for (i, (c, s)) in cos[angle.clone()].iter().zip(&sin[angle]).enumerate() {
                let (first, second) = (i * step, i * step + apart);
                let (a, b, c, s) = (from[first].widen(), from[second].widen(), c.widen(), s.widen());
                to[first] = T::narrow(c * a - s * b);
                to[second] = T::narrow(s * a + c * b);
            }
            to[dim..].iter_mut().zip(&from[dim..]).for_each(|(o, &v)| *o = v);
        }
        Ok(out.freeze())
    }
}

/// Batch entry and sequence place of row `at`.
fn position(layout: &Layout, at: usize) -> (usize, usize) {
    if layout.heads_first {
        (at / layout.sequence / layout.heads, at % layout.sequence)
    } else {
        let token = at / layout.heads;
        (token / layout.sequence, token % layout.sequence)
    }
}

/// How many rows of angles there are, if they fit the input: one per position, or one per token (of one batch entry
/// for all).
fn angles(layout: &Layout, cos: &Tensor, half: usize, by_position: bool) -> Result<usize, KernelError> {
    let rows = match *cos.shape() {
        [rows, columns] if by_position && columns == half => Some(rows),
        [batch, sequence, columns]
            if !by_position
                && columns == half
                && sequence == layout.sequence
                && (batch == layout.batch || batch == 1) =>
        {
            Some(batch * sequence)
        }
        _ => None,
    };
    rows.ok_or_else(|| KernelError::Shape {
        what: "cosines are [positions, pairs] with position ids, else [batch, sequence, pairs]",
        shapes: vec![
            Shape::from_slice(cos.shape()),
            Shape::from_slice(&[layout.batch, layout.sequence, layout.heads, half]),
        ],
    })
}
