//! Keys or values: those of this call, behind those of the past.

use heirloom_mem::{Shape, Tensor, copy};
use heirloom_runtime::{KernelError, RunCx};

use super::{Attention, Extents, typed};
use crate::real::Real;

/// Rows of keys or values by batch entry and head.
pub(super) struct Rows {
    tensor: Tensor,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) len: usize,
    pub(super) size: usize,
    /// `[batch, tokens, heads * size]` instead of `[batch, heads, tokens, size]`.
    flat: bool,
}

impl Rows {
    pub(super) fn new(tensor: Tensor, [batch, heads, len, size]: [usize; 4]) -> Rows {
        Rows { tensor, batch, heads, len, size, flat: false }
    }

    /// The rows of one head as wide numbers.
    pub(super) fn widen<T: Real>(
        &self,
        batch: usize,
        head: usize,
        to: &mut [T::Wide],
    ) -> Result<(), KernelError> {
        let rows = to.chunks_exact_mut(self.size.max(1));
        if self.flat {
            let from = self.tensor.as_slice::<T>()?;
            for (at, to) in rows.enumerate() {
                let start = ((batch * self.len + at) * self.heads + head) * self.size;
                to.iter_mut().zip(&from[start..start + self.size]).for_each(|(w, v)| *w = v.widen());
            }
        } else {
            let mut to = to.iter_mut();
            self.tensor.block_parts::<T>(self.batch * self.heads, batch * self.heads + head, |part| {
                part.iter().zip(&mut to).for_each(|(v, w)| *w = v.widen());
            })?;
        }
        Ok(())
    }
}

/// The rows to attend to, and the past's length where there is one. Sets output `present`.
pub(super) fn gather<T: Real>(
    cx: &mut RunCx<'_>,
    new: usize,
    past: usize,
    present: usize,
    heads: Option<usize>,
) -> Result<(Rows, Option<usize>), KernelError> {
    let fresh = cx.dense(new)?;
    typed::<T>(&fresh, new)?;
    let flat = fresh.shape().len() == 3;
    let Extents { batch, heads, queries: tokens, size } = Attention::extents(fresh.shape(), heads)?;
    let rows = |tensor: Tensor, len: usize, flat: bool| Rows { tensor, batch, heads, len, size, flat };
    let Some(before) = cx.opt_tensor(past)? else {
        if cx.wants(present) {
            let whole = heads_first::<T>(cx, &fresh, [batch, heads, tokens, size], flat)?;
            cx.set(present, whole.clone());
            return Ok((rows(whole, tokens, false), None));
        }
        return Ok((rows(fresh, tokens, flat), None));
    };
    typed::<T>(before, past)?;
    let &[b, h, length, s] = before.shape() else { return Err(misfit(before, &fresh)) };
    if (b, h, s) != (batch, heads, size) {
        return Err(misfit(before, &fresh));
    }
    let mut slot = cx.append(past, 2, tokens)?;
    let from = fresh.dense_bytes().unwrap_or(&[]);
    let row = size * size_of::<T>();
    for batch in 0..batch {
        for head in 0..heads {
            let start = |token: usize| {
                row * if flat {
                    (batch * tokens + token) * heads + head
                } else {
                    (batch * heads + head) * tokens + token
                }
            };
            let runs = (0..tokens).map(|token| &from[start(token)..start(token) + row]);
            slot.fill(batch * heads + head, runs);
        }
    }
    let whole = cx.commit(slot, T::DTYPE, &[batch, heads], &[size])?;
    if cx.wants(present) {
        cx.set(present, whole.clone());
    }
    Ok((rows(whole, length + tokens, false), Some(length)))
}

fn misfit(past: &Tensor, new: &Tensor) -> KernelError {
    KernelError::Shape {
        what: "past keys and values are [batch, heads, past, size] of the new ones' batch, heads and size",
        shapes: vec![Shape::from_slice(past.shape()), Shape::from_slice(new.shape())],
    }
}

/// The tensor as [batch, heads, tokens, size].
fn heads_first<T: Real>(
    cx: &mut RunCx<'_>,
    fresh: &Tensor,
    [batch, heads, tokens, size]: [usize; 4],
    flat: bool,
) -> Result<Tensor, KernelError> {
    if !flat {
        return Ok(fresh.clone());
    }
    let from = fresh.as_slice::<T>()?;
    let mut to = cx.alloc(T::DTYPE, &[batch, heads, tokens, size])?;
    let places = (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..tokens).map(move |t| (b, h, t))));
    let runs = places.map(|(b, h, t)| {
        let start = ((b * tokens + t) * heads + h) * size;
        &from[start..start + size]
    });
    copy::runs(to.elements_mut::<T>(), runs, copy::Purpose::Kernel, cx.ledger());
    Ok(to.freeze())
}
