//! Operators that compute each element of the result from one element of each input.

use heirloom_mem::{DType, Element, Shape, Tensor, TensorMut};
use heirloom_runtime::{BuildCx, BuildError, Cancelled, Kernel, KernelError, RunCx, Watch};

use crate::attributes::only;
use crate::broadcast::{self, Walk};
use crate::run::{self, Operand, hot};
use crate::spread;

/// A kernel without parameters.
pub(crate) struct Plain(pub(crate) fn(&mut RunCx<'_>) -> Result<(), KernelError>);

impl Kernel for Plain {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        (self.0)(cx)
    }
}

/// An operator on two numbers, whose shapes versions before 7 let meet in their own way.
pub(crate) struct Arithmetic {
    pub(crate) meeting: Meeting,
    pub(crate) run: fn(&mut RunCx<'_>, Meeting) -> Result<(), KernelError>,
}

impl Kernel for Arithmetic {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        (self.run)(cx, self.meeting)
    }
}

/// The input of an operator that takes other types.
pub(crate) fn wrong_type(cx: &RunCx<'_>, index: usize, expected: &str) -> KernelError {
    let actual = match cx.tensor(index) {
        Ok(tensor) => format!("{} tensor", tensor.dtype()),
        Err(error) => return error,
    };
    KernelError::InputType { index, expected: expected.into(), actual }
}

/// The element type that inputs `0..count` share.
pub(crate) fn common_type(cx: &RunCx<'_>, count: usize) -> Result<DType, KernelError> {
    let dtype = cx.tensor(0)?.dtype();
    for index in 1..count {
        let actual = cx.tensor(index)?.dtype();
        if actual != dtype {
            return Err(KernelError::InputType {
                index,
                expected: format!("{dtype} tensor, as input 0 is"),
                actual: format!("{actual} tensor"),
            });
        }
    }
    Ok(dtype)
}

/// `f` of each element of input 0, in place where nobody else needs it.
pub(crate) fn unary<T: Element>(cx: &mut RunCx<'_>, f: impl Fn(T) -> T + Sync) -> Result<(), KernelError> {
    if const { hot(T::DTYPE) } {
        return unary_runs::<T>(cx, &|own| run::each_own(own, &f), &|out, from| run::each(out, from, &f));
    }
    unary_calls(cx, &f)
}

/// [`unary`] for rare types.
fn unary_calls<T: Element>(cx: &mut RunCx<'_>, f: &(dyn Fn(T) -> T + Sync)) -> Result<(), KernelError> {
    unary_runs::<T>(cx, &|own| run::each_own(own, f), &|out, from| run::each(out, from, f))
}

fn unary_runs<T: Element>(
    cx: &mut RunCx<'_>,
    own: &(dyn Fn(&mut [T]) + Sync),
    each: &(dyn Fn(&mut [T], &[T]) + Sync),
) -> Result<(), KernelError> {
    if let Some(mut out) = cx.take_unique(0) {
        spread::rows((cx.team(), cx.cancel()), out.elements_mut::<T>(), 1, own)?;
        cx.set(0, out.freeze());
        return Ok(());
    }
    map_runs(cx, T::DTYPE, each)
}

/// `f` of each element of input 0, as a tensor of `dtype`, whose elements `O` holds.
pub(crate) fn map<T: Element, O: Element>(
    cx: &mut RunCx<'_>,
    dtype: DType,
    f: impl Fn(T) -> O + Sync,
) -> Result<(), KernelError> {
    map_runs::<T, O>(cx, dtype, &|out, from| run::each(out, from, &f))
}

fn map_runs<T: Element, O: Element>(
    cx: &mut RunCx<'_>,
    dtype: DType,
    each: &(dyn Fn(&mut [O], &[T]) + Sync),
) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let mut out = cx.alloc(dtype, input.shape())?;
    spread::pairs((cx.team(), cx.cancel()), out.elements_mut::<O>(), input.as_slice::<T>()?, each)?;
    cx.set(0, out.freeze());
    Ok(())
}

/// Whether `f` holds for each element of input 0, as a BOOL tensor.
pub(crate) fn flags<T: Element>(cx: &mut RunCx<'_>, f: impl Fn(T) -> bool + Sync) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let mut out = cx.alloc(DType::Bool, input.shape())?;
    spread::pairs((cx.team(), cx.cancel()), out.bytes_mut(), input.as_slice::<T>()?, &|out, from| {
        run::each(out, from, &|v| u8::from(f(v)));
    })?;
    cx.set(0, out.freeze());
    Ok(())
}

/// How the shapes of two operands meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meeting {
    /// By their last axes.
    Last,
    /// Before version 7: the second's first axis is this one of the first.
    At(i64),
}

impl Meeting {
    /// From the attributes `axis` and `broadcast`, which versions before 7 have.
    pub(crate) fn build(cx: &BuildCx<'_>) -> Result<Meeting, BuildError> {
        if cx.opset >= 7 {
            only(cx, &[])?;
            return Ok(Meeting::Last);
        }
        only(cx, &["axis", "broadcast"])?;
        let attributes = &cx.node.attributes;
        // Without `broadcast` the shapes are equal, and meet anyhow.
        Ok(match (attributes.int_or("broadcast", 0)?, attributes.opt_int("axis")?) {
            (1, Some(axis)) => Meeting::At(axis),
            _ => Meeting::Last,
        })
    }

    /// The shape that the second operand has for the first.
    pub(crate) fn second(self, first: &[usize], second: &[usize]) -> Result<Shape, KernelError> {
        let mut shape = Shape::from_slice(second);
        if let Meeting::At(axis) = self {
            let axis = heirloom_runtime::normalize_axis(axis, first.len())?;
            let behind = first.len().checked_sub(axis + second.len()).ok_or_else(|| KernelError::Shape {
                what: "the second operand has no more axes than the first has from `axis` on",
                shapes: vec![Shape::from_slice(first), shape.clone()],
            })?;
            shape.extend(std::iter::repeat_n(1, behind));
        }
        Ok(shape)
    }
}

/// `f` of each pair of elements of inputs 0 and 1, broadcast; in place where one of them has the result's shape and
/// nobody else needs it.
pub(crate) fn binary<T: Element>(
    cx: &mut RunCx<'_>,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<(), KernelError> {
    meet(cx, Meeting::Last, f)
}

/// [`binary`] for shapes that meet in this way.
pub(crate) fn meet<T: Element>(
    cx: &mut RunCx<'_>,
    meeting: Meeting,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<(), KernelError> {
    if const { hot(T::DTYPE) } {
        return meet_runs::<T>(cx, meeting, &|out, a, b| run::combine(out, a, b, &f));
    }
    meet_calls(cx, meeting, &f)
}

/// [`meet`] for rare types.
fn meet_calls<T: Element>(
    cx: &mut RunCx<'_>,
    meeting: Meeting,
    f: &(dyn Fn(T, T) -> T + Sync),
) -> Result<(), KernelError> {
    meet_runs::<T>(cx, meeting, &|out, a, b| run::combine(out, a, b, f))
}

/// What an operator does with one run: its result, of `O`, and its operands.
type Run<'f, T, O> = &'f (dyn Fn(&mut [O], Operand<'_, T>, Operand<'_, T>) + Sync);

fn meet_runs<T: Element>(
    cx: &mut RunCx<'_>,
    meeting: Meeting,
    run: Run<'_, T, T>,
) -> Result<(), KernelError> {
    let (a, own) = (Shape::from_slice(cx.tensor(0)?.shape()), Shape::from_slice(cx.tensor(1)?.shape()));
    let b = meeting.second(&a, &own)?;
    let shape = broadcast::shape(&[&a, &b])?;
    if shape == a
        && let Some(mut out) = cx.take_unique(0)
    {
        let b_tensor = cx.dense(1)?;
        let other = b_tensor.as_slice::<T>()?;
        if a == b {
            spread::pairs((cx.team(), cx.cancel()), out.elements_mut::<T>(), other, &|out, other| {
                run(out, Operand::Own, Operand::Each(other));
            })?;
        } else {
            own_runs(cx, &mut out, &shape, &b, other, &|out, other| run(out, Operand::Own, other))?;
        }
        cx.set(0, out.freeze());
        return Ok(());
    }
    if shape == own
        && let Some(mut out) = cx.take_unique(1)
    {
        let a_tensor = cx.dense(0)?;
        let other = a_tensor.as_slice::<T>()?;
        own_runs(cx, &mut out, &shape, &a, other, &|out, other| run(out, other, Operand::Own))?;
        cx.set(0, out.freeze());
        return Ok(());
    }
    let (a_tensor, b_tensor) = (cx.dense(0)?, cx.dense(1)?);
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let (x, y) = (a_tensor.as_slice::<T>()?, b_tensor.as_slice::<T>()?);
    if a == b {
        let piece = if cx.team().threads() == 1 { Watch::PIECE } else { spread::PIECE };
        let parts = out.elements_mut::<T>().chunks_mut(piece).zip(x.chunks(piece).zip(y.chunks(piece)));
        let by = (cx.team(), cx.cancel());
        spread::parts(by, parts, |(out, (x, y))| run(out, Operand::Each(x), Operand::Each(y)))?;
    } else {
        zip_runs(&mut cx.cancel().watch(), out.elements_mut(), &shape, [&a, &b], x, y, run)?;
    }
    cx.set(0, out.freeze());
    Ok(())
}

/// `f` of each pair of elements of inputs 0 and 1, broadcast, as a BOOL tensor.
pub(crate) fn compare<T: Copy>(
    cx: &mut RunCx<'_>,
    elements: fn(&Tensor) -> Result<&[T], KernelError>,
    f: impl Fn(T, T) -> bool + Sync,
) -> Result<(), KernelError> {
    compare_runs(cx, elements, &|out, a, b| run::pair(out, a, b, &|x, y| u8::from(f(x, y))))
}

/// [`compare`] for numbers.
pub(crate) fn compare_numbers<T: Element>(
    cx: &mut RunCx<'_>,
    f: impl Fn(T, T) -> bool + Sync,
) -> Result<(), KernelError> {
    if const { hot(T::DTYPE) } {
        return compare(cx, |tensor| Ok(tensor.as_slice::<T>()?), f);
    }
    compare_calls(cx, &f)
}

/// [`compare_numbers`] for rare types.
fn compare_calls<T: Element>(
    cx: &mut RunCx<'_>,
    f: &(dyn Fn(T, T) -> bool + Sync),
) -> Result<(), KernelError> {
    compare(cx, |tensor| Ok(tensor.as_slice::<T>()?), f)
}

fn compare_runs<T: Copy>(
    cx: &mut RunCx<'_>,
    elements: fn(&Tensor) -> Result<&[T], KernelError>,
    run: Run<'_, T, u8>,
) -> Result<(), KernelError> {
    let (a, b) = (cx.dense(0)?, cx.dense(1)?);
    let shape = broadcast::shape(&[a.shape(), b.shape()])?;
    let mut out = cx.alloc(DType::Bool, &shape)?;
    let shapes = [a.shape(), b.shape()];
    zip_runs(&mut cx.cancel().watch(), out.bytes_mut(), &shape, shapes, elements(&a)?, elements(&b)?, run)?;
    cx.set(0, out.freeze());
    Ok(())
}

/// `run` of each run of `out`, of shape `shape`, and what of `other` is broadcast to it.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn own_runs<T: Element>(
    cx: &RunCx<'_>,
    out: &mut TensorMut,
    shape: &[usize],
    other_shape: &[usize],
    other: &[T],
    run: &dyn Fn(&mut [T], Operand<'_, T>),
) -> Result<(), Cancelled> {
    let walk = Walk::new(shape, [other_shape]);
    let own = out.elements_mut::<T>();
    let [step] = walk.step;
    walk.pieces(&mut cx.cancel().watch(), |at, [from], length| {
        run(&mut own[at..at + length], Operand::at(other, from, length, step));
    })
}

/// Fills `out`, of shape `shape`, from two operands that broadcast to it.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn zip<T: Copy, O>(
    watch: &mut Watch<'_>,
    out: &mut [O],
    shape: &[usize],
    operands: [&[usize]; 2],
    a: &[T],
    b: &[T],
    f: impl Fn(T, T) -> O + Sync,
) -> Result<(), Cancelled> {
    zip_runs(watch, out, shape, operands, a, b, &|out, a, b| run::pair(out, a, b, &f))
}

/// [`zip`], run by run.
fn zip_runs<T: Copy, O>(
    watch: &mut Watch<'_>,
    out: &mut [O],
    shape: &[usize],
    operands: [&[usize]; 2],
    a: &[T],
    b: &[T],
    run: Run<'_, T, O>,
) -> Result<(), Cancelled> {
    let walk = Walk::new(shape, operands);
    let [x, y] = walk.step;
    walk.pieces(watch, |at, [i, j], length| {
        run(&mut out[at..at + length], Operand::at(a, i, length, x), Operand::at(b, j, length, y));
    })
}

/// The bytes of a BOOL tensor's elements: 0 is false.
pub(crate) fn bools(tensor: &Tensor, index: usize) -> Result<&[u8], KernelError> {
    if tensor.dtype() != DType::Bool {
        let actual = format!("{} tensor", tensor.dtype());
        return Err(KernelError::InputType { index, expected: "a BOOL tensor".into(), actual });
    }
    tensor.dense_bytes().ok_or_else(|| KernelError::Other("a BOOL tensor with gaps".into()))
}

/// Sets an output that the node may not have.
pub(crate) fn set_wanted(cx: &mut RunCx<'_>, index: usize, value: impl Into<heirloom_types::Value>) {
    if index < cx.output_count() {
        cx.set(index, value);
    }
}
