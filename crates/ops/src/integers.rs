//! Small integer tensors that say what to do: shapes, axes, indices.

use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{KernelError, RunCx, Watch};
use smallvec::SmallVec;

/// A short list of integers.
pub(crate) type Ints = SmallVec<[i64; 6]>;

/// Checked indices.
pub(crate) type Places = SmallVec<[usize; 6]>;

/// The elements of an INT32 or INT64 input.
pub(crate) fn list(cx: &RunCx<'_>, index: usize) -> Result<Ints, KernelError> {
    elements(cx, &cx.dense(index)?, index)
}

/// The elements of an INT32 or INT64 input; `None` where it is absent.
pub(crate) fn opt_list(cx: &RunCx<'_>, index: usize) -> Result<Option<Ints>, KernelError> {
    cx.opt_tensor(index)?.is_some().then(|| list(cx, index)).transpose()
}

fn elements(cx: &RunCx<'_>, tensor: &Tensor, index: usize) -> Result<Ints, KernelError> {
    match tensor.dtype() {
        DType::Int64 => {
            let mut list = Ints::with_capacity(tensor.len());
            for piece in tensor.as_slice::<i64>()?.chunks(Watch::PIECE) {
                cx.cancel().check()?;
                list.extend(piece.iter().copied());
            }
            Ok(list)
        }
        DType::Int32 => Ok(tensor.as_slice::<i32>()?.iter().map(|&v| i64::from(v)).collect()),
        actual => Err(KernelError::InputType {
            index,
            expected: "an INT32 or INT64 tensor".into(),
            actual: format!("{actual} tensor"),
        }),
    }
}

/// A number of elements as an extent.
pub(crate) fn extent(what: &'static str, value: i64) -> Result<usize, KernelError> {
    let range = KernelError::Range { what, value, low: 0, high: i64::MAX };
    usize::try_from(value).map_err(|_| range)
}

/// Axes of a tensor of `rank` axes, each named once, in rising order.
pub(crate) fn axes(list: &[i64], rank: usize) -> Result<SmallVec<[usize; 6]>, KernelError> {
    let mut axes = SmallVec::new();
    for &axis in list {
        axes.push(heirloom_runtime::normalize_axis(axis, rank)?);
    }
    axes.sort_unstable();
    match axes.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(axes),
        Some(pair) => Err(KernelError::Other(format!("axis {} is named twice", pair[0]))),
    }
}

/// The one element of an INT32 or INT64 input.
pub(crate) fn scalar(cx: &RunCx<'_>, index: usize, what: &str) -> Result<i64, KernelError> {
    match list(cx, index)?[..] {
        [value] => Ok(value),
        ref list => Err(KernelError::Other(format!("{what} has one element, not {}", list.len()))),
    }
}
