//! Tensors of real numbers of any width, computed with in f64.

use half::{bf16, f16};
use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{KernelError, RunCx, Watch};

use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::real::num::Wide;
use crate::spread;

/// The elements of a tensor of real numbers.
pub(crate) fn reals(cx: &RunCx<'_>, index: usize, list: &Tensor) -> Result<Vec<f64>, KernelError> {
    by_type!(list.dtype(), [f32, f16, bf16, f64],
        T => {
            let from = list.as_slice::<T>()?;
            let mut values = Vec::with_capacity(from.len());
            for piece in from.chunks(Watch::PIECE) {
                cx.cancel().check()?;
                values.extend(piece.iter().map(|v| v.widen().to_f64()));
            }
            Ok(values)
        },
        _ => Err(wrong_type(cx, index, "real numbers")))
}

/// The type, shape and elements of an input of real numbers.
pub(crate) fn input(cx: &RunCx<'_>, index: usize) -> Result<(DType, Shape, Vec<f64>), KernelError> {
    let tensor = cx.dense(index)?;
    Ok((tensor.dtype(), Shape::from_slice(tensor.shape()), reals(cx, index, &tensor)?))
}

/// [`input`]; `None` where it is absent.
pub(crate) fn opt_input(
    cx: &RunCx<'_>,
    index: usize,
) -> Result<Option<(DType, Shape, Vec<f64>)>, KernelError> {
    cx.opt_tensor(index)?.is_some().then(|| input(cx, index)).transpose()
}

/// An error about the shapes of some inputs.
pub(crate) fn misfit(what: &'static str, shapes: &[&[usize]]) -> KernelError {
    KernelError::Shape { what, shapes: shapes.iter().map(|s| Shape::from_slice(s)).collect() }
}

/// A tensor of a real type with these elements.
pub(crate) fn written(
    cx: &mut RunCx<'_>,
    dtype: DType,
    shape: &[usize],
    values: &[f64],
) -> Result<Tensor, KernelError> {
    let mut out = cx.alloc(dtype, shape)?;
    by_type!(dtype, [f32, f16, bf16, f64], T => {
        spread::pieces(cx.cancel(), out.elements_mut::<T>(), |at, to| {
            let pairs = to.iter_mut().zip(&values[at..]);
            pairs.for_each(|(t, &v)| *t = T::narrow(<T as Real>::Wide::from_f64(v)));
        })?;
    }, _ => return Err(KernelError::Other(format!("{dtype} holds no real numbers"))));
    Ok(out.freeze())
}

/// The transpose of a matrix of so many rows and columns.
pub(crate) fn turned(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| values[i * columns + j])).collect()
}
