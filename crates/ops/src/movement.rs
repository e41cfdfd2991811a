//! Operators that only move elements: each result is a walk over the elements of one input.

use std::sync::Arc;

use heirloom_mem::{Shape, Storage, Tensor, copy, element_count};
use heirloom_runtime::{Cancelled, KernelError, RunCx};
use heirloom_types::{StringTensor, Value};
use smallvec::SmallVec;

/// How the elements of a dense tensor are read: result element `[i, j, …]` is input element
/// `base + i * strides[0] + j * strides[1] + …`.
pub(crate) struct View {
    pub(crate) shape: Shape,
    pub(crate) strides: SmallVec<[isize; 6]>,
    pub(crate) base: usize,
}

/// Strides of a dense tensor in elements.
pub(crate) fn dense_strides(shape: &[usize]) -> SmallVec<[isize; 6]> {
    let mut strides = SmallVec::from_elem(1isize, shape.len());
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * isize::try_from(shape[axis + 1]).unwrap_or(isize::MAX);
    }
    strides
}

impl View {
    /// A whole dense tensor.
    pub(crate) fn whole(shape: &[usize]) -> View {
        View { shape: Shape::from_slice(shape), strides: dense_strides(shape), base: 0 }
    }

    /// The longest trailing part that is dense: its elements, and the axes before it.
    fn run(&self) -> (usize, usize) {
        let mut run = 1;
        for axis in (0..self.shape.len()).rev() {
            if self.shape[axis] != 1 && self.strides[axis] != isize::try_from(run).unwrap_or(isize::MAX) {
                return (run, axis + 1);
            }
            run *= self.shape[axis];
        }
        (run, 0)
    }

    /// Where each run begins, in the order of the result.
    fn starts(&self, outer: usize) -> Starts<'_> {
        let left = self.shape.iter().product::<usize>() != 0;
        let counter = SmallVec::from_elem(0, outer);
        Starts {
            shape: &self.shape[..outer],
            strides: &self.strides[..outer],
            counter,
            at: self.base as isize,
            left,
        }
    }
}

struct Starts<'a> {
    shape: &'a [usize],
    strides: &'a [isize],
    counter: SmallVec<[usize; 6]>,
    at: isize,
    left: bool,
}

impl Iterator for Starts<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if !self.left {
            return None;
        }
        let current = self.at;
        self.left = false;
        for axis in (0..self.shape.len()).rev() {
            self.counter[axis] += 1;
            self.at += self.strides[axis];
            if self.counter[axis] < self.shape[axis] {
                self.left = true;
                break;
            }
            self.at -= self.strides[axis] * self.counter[axis] as isize;
            self.counter[axis] = 0;
        }
        Some(current as usize)
    }
}

/// What `view` sees of input `index`, which is a tensor, of strings too. In place where that is dense.
pub(crate) fn materialize(cx: &mut RunCx<'_>, index: usize, view: &View) -> Result<Value, KernelError> {
    let (run, outer) = view.run();
    if let Some(Value::Strings(strings)) = cx.value(index) {
        let mut elements = Vec::with_capacity(view.shape.iter().product());
        for start in view.starts(outer) {
            elements.extend(strings.elements[start..start + run].iter().cloned());
        }
        return Ok(Value::Strings(Arc::new(StringTensor { shape: view.shape.clone(), elements })));
    }
    let input = cx.dense(index)?;
    let bits = input.dtype().bit_width().map_or(8, |bits| bits as usize);
    if outer == 0
        && (view.base * bits).is_multiple_of(8)
        && ((run * bits).is_multiple_of(8) || view.base + run == input.len())
        && let Storage::Dense(bytes) = input.storage()
        && let Some(len) = input.dtype().payload_bytes(run)
        && let Some(part) = bytes.get(view.base * bits / 8..view.base * bits / 8 + len)
    {
        return Ok(Tensor::new(input.dtype(), &view.shape, part)?.into());
    }
    let mut out = cx.alloc(input.dtype(), &view.shape)?;
    let from = input.dense_bytes().unwrap_or(&[]);
    if bits < 8 {
        narrow(cx, out.bytes_mut(), from, bits, view)?;
        return Ok(out.freeze().into());
    }
    let width = bits / 8;
    if run < 8 && view.shape.len() >= 2 {
        match width {
            1 => tiles::<1>(cx, out.bytes_mut(), from, view),
            2 => tiles::<2>(cx, out.bytes_mut(), from, view),
            4 => tiles::<4>(cx, out.bytes_mut(), from, view),
            8 => tiles::<8>(cx, out.bytes_mut(), from, view),
            _ => tiles::<16>(cx, out.bytes_mut(), from, view),
        }?;
        return Ok(out.freeze().into());
    }
    let run = run * width;
    let runs = view.starts(outer).map(|start| &from[start * width..start * width + run]);
    fill(cx, out.bytes_mut(), runs)?;
    Ok(out.freeze().into())
}

/// Fills `to` with the runs of `from`, one behind the other.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn fill<'a>(
    cx: &RunCx<'_>,
    to: &mut [u8],
    from: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Cancelled> {
    let on = || !cx.cancel().is_cancelled();
    if copy::runs_while(to, from, on, copy::Purpose::Kernel, cx.ledger()) { Ok(()) } else { Err(Cancelled) }
}

/// Elements of `W` bytes, tile by tile of the last two axes, so that both sides stay in the cache.
fn tiles<const W: usize>(cx: &RunCx<'_>, out: &mut [u8], from: &[u8], view: &View) -> Result<(), Cancelled> {
    const TILE: usize = 16;
    let outer = view.shape.len() - 2;
    let (rows, columns) = (view.shape[outer], view.shape[outer + 1]);
    let (down, across) = (view.strides[outer], view.strides[outer + 1]);
    let (from, out) = (from.as_chunks::<W>().0, out.as_chunks_mut::<W>().0);
    let planes = out.chunks_exact_mut((rows * columns).max(1));
    let mut watch = cx.cancel().watch();
    for (start, out) in view.starts(outer).zip(planes) {
        for top in (0..rows).step_by(TILE) {
            watch.pass(TILE * columns)?;
            for left in (0..columns).step_by(TILE) {
                let right = (left + TILE).min(columns);
                for row in top..(top + TILE).min(rows) {
                    let mut at = start as isize + row as isize * down + left as isize * across;
                    for to in &mut out[row * columns + left..row * columns + right] {
                        *to = from[at as usize];
                        at += across;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Elements of less than a byte move one by one.
fn narrow(cx: &RunCx<'_>, out: &mut [u8], from: &[u8], bits: usize, view: &View) -> Result<(), Cancelled> {
    out.fill(0);
    let mut watch = cx.cancel().watch();
    let mask = (1u8 << bits) - 1;
    for (at, start) in view.starts(view.shape.len()).enumerate() {
        watch.pass(1)?;
        let (from_bit, to_bit) = (start * bits, at * bits);
        let code = from[from_bit / 8] >> (from_bit % 8) & mask;
        out[to_bit / 8] |= code << (to_bit % 8);
    }
    Ok(())
}

/// The same elements as input `index` in another shape of as many elements; in place where they are dense.
pub(crate) fn reshape(cx: &mut RunCx<'_>, index: usize, shape: &[usize]) -> Result<Value, KernelError> {
    match cx.value(index) {
        Some(Value::Strings(strings)) => {
            if element_count(shape) != Some(strings.elements.len()) {
                return Err(KernelError::Shape {
                    what: "a reshape keeps the number of elements",
                    shapes: vec![strings.shape.clone(), Shape::from_slice(shape)],
                });
            }
            let elements = strings.elements.clone();
            Ok(Value::Strings(Arc::new(StringTensor { shape: Shape::from_slice(shape), elements })))
        }
        _ => {
            let tensor = cx.tensor(index)?;
            match tensor.reshape(shape) {
                Ok(tensor) => Ok(tensor.into()),
                Err(heirloom_mem::ViewError::NotDense { .. }) => Ok(cx.dense(index)?.reshape(shape)?.into()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// The shape of a tensor input, of strings too.
pub(crate) fn shape_of(cx: &RunCx<'_>, index: usize) -> Result<Shape, KernelError> {
    match cx.value(index) {
        Some(Value::Strings(strings)) => Ok(strings.shape.clone()),
        _ => Ok(Shape::from_slice(cx.tensor(index)?.shape())),
    }
}
