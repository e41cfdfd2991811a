//! Attention over caches whose batch entries are valid to different lengths, for operators of other domains.

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{KernelError, RunCx};

use super::cache::Rows;
use super::mask::Mask;
use super::{Attention, Extents, Row, Scores, Scratch, check};
use crate::real::Real;
use crate::real::num::Wide;

/// What a query sees and how scores become weights.
pub(crate) struct Core {
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) scale: Option<f32>,
    pub(crate) softcap: f32,
    pub(crate) causal: bool,
    /// Keys that a query sees to the left of its own place.
    pub(crate) left: Option<i64>,
}

impl Core {
    /// Queries `[batch, tokens, heads * size]` over caches `[batch, kv heads, rows, size]`. Entry `b`'s queries begin at
    /// place `first[b]`; its first `valid[b]` rows are seen.
    pub(crate) fn attend<T: Real>(
        &self,
        cx: &mut RunCx<'_>,
        q: &Tensor,
        (keys, values): (&Tensor, &Tensor),
        first: &[usize],
        valid: &[usize],
    ) -> Result<Tensor, KernelError> {
        let attention = Attention {
            q_heads: Some(self.heads),
            kv_heads: Some(self.kv_heads),
            scale: self.scale,
            softcap: self.softcap,
            causal: self.causal,
            window: (self.left, None),
            scores: Scores::Raw,
            double: false,
        };
        let query = Attention::extents(q.shape(), attention.q_heads)?;
        let (keys, values) = (Rows::of_cache(keys)?, Rows::of_cache(values)?);
        check(&query, &keys, &values)?;
        let Extents { batch, heads, queries, size } = query;
        let mut out = cx.alloc(T::DTYPE, &[batch, queries, heads * values.size])?;
        let wide = size_of::<T::Wide>();
        let longest = valid.iter().copied().max().unwrap_or(0);
        let mask = Mask::none([batch, heads, queries, longest]);
        let scale = T::Wide::from_f64(self.scale.map_or(1.0 / (size as f64).sqrt(), f64::from));
        let q = q.as_slice::<T>()?;
        let to = out.elements_mut::<T>();
        let mut scratch = Scratch {
            keys: cx.scratch(longest * keys.size * wide),
            values: cx.scratch(longest * values.size * wide),
            row: cx.scratch((longest + keys.size + values.size) * wide),
        };
        for (b, (&first, &valid)) in first.iter().zip(valid).enumerate() {
            for kv_head in 0..keys.heads {
                keys.widen::<T>(
                    b,
                    kv_head,
                    &mut scratch.keys.elements_mut::<T::Wide>()[..valid * keys.size],
                )?;
                values.widen::<T>(
                    b,
                    kv_head,
                    &mut scratch.values.elements_mut::<T::Wide>()[..valid * values.size],
                )?;
                let group = heads / keys.heads;
                for head in kv_head * group..(kv_head + 1) * group {
                    for i in 0..queries {
                        cx.cancel().check()?;
                        let place = i64::try_from(first + i).unwrap_or(i64::MAX);
                        let limits = attention.limits(place, valid, None);
                        let token = (b * queries + i) * heads + head;
                        let row = Row { keys: valid, q: &q[token * size..(token + 1) * size], limits, scale };
                        let to = &mut to[token * values.size..(token + 1) * values.size];
                        attention.row(&row, &mut scratch, &mask, [b, head, i], None, to);
                    }
                }
            }
        }
        let Scratch { keys, values, row } = scratch;
        [keys, values, row].into_iter().for_each(|scratch| cx.release(scratch));
        Ok(out.freeze())
    }
}

impl Rows {
    /// A cache `[batch, heads, rows, size]`.
    fn of_cache(tensor: &Tensor) -> Result<Rows, KernelError> {
        let &[batch, heads, len, size] = tensor.shape() else {
            return Err(KernelError::Shape {
                what: "a cache is [batch, heads, rows, size]",
                shapes: vec![Shape::from_slice(tensor.shape())],
            });
        };
        Ok(Rows::new(tensor.clone(), [batch, heads, len, size]))
    }
}
