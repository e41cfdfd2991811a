//! The optional mask: BOOL says which keys take part, numbers are added to the scores.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{KernelError, RunCx};

use super::typed;
use crate::elementwise::bools;
use crate::real::Real;
use crate::real::num::Wide;

/// What is added to the scores, broadcast to [batch, heads, queries, keys]; keys beyond a shorter mask are masked out.
pub(super) struct Mask<W> {
    /// 0 or minus infinity for a BOOL mask; `None` without a mask.
    bias: Option<Vec<W>>,
    /// Strides over batch, heads, queries and keys; 0 where it is broadcast.
    strides: [usize; 4],
    keys: usize,
}

impl<W: Wide> Mask<W> {
    /// No mask.
    pub(super) fn none(extents: [usize; 4]) -> Mask<W> {
        Mask { bias: None, strides: [0; 4], keys: extents[3] }
    }

    pub(super) fn of<T: Real<Wide = W>>(
        cx: &RunCx<'_>,
        index: usize,
        extents: [usize; 4],
    ) -> Result<Mask<W>, KernelError> {
        if cx.opt_tensor(index)?.is_none() {
            return Ok(Mask::none(extents));
        }
        let tensor = cx.dense(index)?;
        let misfit = || KernelError::Shape {
            what: "the mask is broadcast to [batch, heads, queries, keys]",
            shapes: vec![Shape::from_slice(tensor.shape()), Shape::from_slice(&extents)],
        };
        let rank = tensor.shape().len();
        if rank > 4 {
            return Err(misfit());
        }
        let (mut strides, mut stride) = ([0; 4], 1);
        for axis in (4 - rank..4).rev() {
            let own = tensor.shape()[axis + rank - 4];
            let shorter = axis == 3 && own < extents[3];
            if own != 1 {
                if own != extents[axis] && !shorter {
                    return Err(misfit());
                }
                strides[axis] = stride;
            }
            stride *= own;
        }
        let keys = match tensor.shape().last() {
            Some(&own) if own != 1 => own,
            _ => extents[3],
        };
        let bias = if tensor.dtype() == DType::Bool {
            let minus_infinity = W::from_f32(f32::NEG_INFINITY);
            let bias = |&takes_part: &u8| if takes_part != 0 { W::default() } else { minus_infinity };
            bools(&tensor, index)?.iter().map(bias).collect()
        } else {
            typed::<T>(&tensor, index)?;
            tensor.as_slice::<T>()?.iter().map(|v| v.widen()).collect()
        };
        Ok(Mask { bias: Some(bias), strides, keys })
    }

    /// The score of key `key` for a query.
    pub(super) fn apply(&self, score: W, [batch, head, query]: [usize; 3], key: usize) -> W {
        let Some(values) = &self.bias else { return score };
        let minus_infinity = W::from_f32(f32::NEG_INFINITY);
        if key >= self.keys {
            return minus_infinity;
        }
        let [b, h, q, k] = self.strides;
        let bias = values[batch * b + head * h + query * q + key * k];
        // An infinite score where the mask says no stays out.
        if bias == minus_infinity { bias } else { score + bias }
    }
}
