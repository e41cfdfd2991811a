//! Loops over one run of elements.
//!
//! A loop is compiled for each operator where the element type is common in models ([`hot`]); for the other types it is
//! compiled once, and calls the operator for each element.

use heirloom_mem::DType;

/// Whether each operator has loops of its own for this type.
pub(crate) const fn hot(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Int64 | DType::Int32)
}

/// What an operator on two elements reads in a run.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    /// What the result held before.
    Own,
    /// An element for each of the result.
    Each(&'a [T]),
    /// One element for the whole run.
    Same(T),
}

impl<'a, T: Copy> Operand<'a, T> {
    /// The operand of a run of `run` elements that begins at `at` of `values` and goes on by `step`, 0 or 1.
    pub(crate) fn at(values: &'a [T], at: usize, run: usize, step: usize) -> Operand<'a, T> {
        if step == 1 { Operand::Each(&values[at..at + run]) } else { Operand::Same(values[at]) }
    }
}

/// `f` of each pair, where the result has the operands' type.
pub(crate) fn combine<T: Copy>(
    out: &mut [T],
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    f: &(impl Fn(T, T) -> T + ?Sized),
) {
    match (a, b) {
        (Operand::Own, Operand::Each(y)) => out.iter_mut().zip(y).for_each(|(o, &y)| *o = f(*o, y)),
        (Operand::Own, Operand::Same(y)) => out.iter_mut().for_each(|o| *o = f(*o, y)),
        (Operand::Each(x), Operand::Own) => out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(x, *o)),
        (Operand::Same(x), Operand::Own) => out.iter_mut().for_each(|o| *o = f(x, *o)),
        (Operand::Own, Operand::Own) => out.iter_mut().for_each(|o| *o = f(*o, *o)),
        (a, b) => pair(out, a, b, f),
    }
}

/// `f` of each pair of operands, neither of which is the result itself.
pub(crate) fn pair<T: Copy, O>(
    out: &mut [O],
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    f: &(impl Fn(T, T) -> O + ?Sized),
) {
    match (a, b) {
        (Operand::Each(x), Operand::Each(y)) => {
            out.iter_mut().zip(x).zip(y).for_each(|((o, &x), &y)| *o = f(x, y));
        }
        (Operand::Each(x), Operand::Same(y)) => out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(x, y)),
        (Operand::Same(x), Operand::Each(y)) => out.iter_mut().zip(y).for_each(|(o, &y)| *o = f(x, y)),
        (Operand::Same(x), Operand::Same(y)) => out.iter_mut().for_each(|o| *o = f(x, y)),
        (Operand::Own, _) | (_, Operand::Own) => unreachable!("`combine` has taken these"),
    }
}

/// `f` of each element.
pub(crate) fn each<I: Copy, O>(out: &mut [O], from: &[I], f: &(impl Fn(I) -> O + ?Sized)) {
    out.iter_mut().zip(from).for_each(|(o, &v)| *o = f(v));
}

/// `f` of each element, in its place.
pub(crate) fn each_own<T: Copy>(own: &mut [T], f: &(impl Fn(T) -> T + ?Sized)) {
    own.iter_mut().for_each(|v| *v = f(*v));
}
