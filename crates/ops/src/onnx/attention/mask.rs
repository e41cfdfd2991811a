//! The optional mask: BOOL says which keys take part, numbers are added to the scores.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{KernelError, RunCx};

use super::typed;
use crate::elementwise::bools;
use crate::real::Real;
use crate::real::num::Wide;

/// A mask broadcast to [batch, heads, queries, keys]; keys beyond a shorter mask are masked out.
pub(super) struct Mask<T: Real> {
    tensor: Option<Tensor>,
    /// Strides over batch, heads, queries and keys; 0 where it is broadcast.
    strides: [usize; 4],
    keys: usize,
    bool: bool,
    element: std::marker::PhantomData<T>,
}

impl<T: Real> Mask<T> {
    pub(super) fn of(cx: &RunCx<'_>, index: usize, extents: [usize; 4]) -> Result<Mask<T>, KernelError> {
        let none = Mask {
            tensor: None,
            strides: [0; 4],
            keys: extents[3],
            bool: false,
            element: std::marker::PhantomData,
        };
        if cx.opt_tensor(index)?.is_none() {
            return Ok(none);
        }
        let tensor = cx.dense(index)?;
        let bool = tensor.dtype() == DType::Bool;
        if !bool {
            typed::<T>(&tensor, index)?;
        }
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
        Ok(Mask { tensor: Some(tensor), strides, keys, bool, ..none })
    }

    /// The score of key `key` for a query.
    pub(super) fn apply(&self, score: T::Wide, [batch, head, query]: [usize; 3], key: usize) -> T::Wide {
        let Some(tensor) = &self.tensor else { return score };
        let minus_infinity = T::Wide::from_f32(f32::NEG_INFINITY);
        if key >= self.keys {
            return minus_infinity;
        }
        let [b, h, q, k] = self.strides;
        let at = batch * b + head * h + query * q + key * k;
        if self.bool {
            let holds = bools(tensor, 3).is_ok_and(|mask| mask[at] != 0);
            return if holds { score } else { minus_infinity };
        }
        let bias = tensor.as_slice::<T>().map_or(minus_infinity, |mask| mask[at].widen());
        // An infinite score where the mask says no stays out.
        if bias == minus_infinity { bias } else { score + bias }
    }
}
