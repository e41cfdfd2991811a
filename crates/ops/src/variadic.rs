//! Operators that fold any number of tensors element by element, broadcast.

use heirloom_mem::Shape;
use heirloom_runtime::{KernelError, RunCx};

use crate::broadcast;
use crate::elementwise::{common_type, own_runs};
use crate::run::{self, Operand, hot};
use crate::scalar::Numeric;

/// The inputs folded with `f` from the first on, then `finish` of each element and the number of inputs.
pub(crate) fn fold<T: Numeric>(
    cx: &mut RunCx<'_>,
    f: impl Fn(T::Wide, T::Wide) -> T::Wide + Copy,
    finish: impl Fn(T::Wide, usize) -> T::Wide + Copy,
) -> Result<(), KernelError> {
    let count = cx.input_count();
    let (step, end) = (|a: T, b: T| T::down(f(a.up(), b.up())), |v: T| T::down(finish(v.up(), count)));
    if const { hot(T::DTYPE) } {
        return fold_runs::<T>(cx, &|own, other| run::combine(own, Operand::Own, other, &step), &|own| {
            run::each_own(own, &end)
        });
    }
    fold_calls(cx, &step, &end)
}

/// [`fold`] for rare types.
fn fold_calls<T: Numeric>(
    cx: &mut RunCx<'_>,
    step: &dyn Fn(T, T) -> T,
    end: &dyn Fn(T) -> T,
) -> Result<(), KernelError> {
    fold_runs::<T>(cx, &|own, other| run::combine(own, Operand::Own, other, step), &|own| {
        run::each_own(own, end)
    })
}

fn fold_runs<T: Numeric>(
    cx: &mut RunCx<'_>,
    step: &dyn Fn(&mut [T], Operand<'_, T>),
    end: &dyn Fn(&mut [T]),
) -> Result<(), KernelError> {
    let count = cx.input_count();
    common_type(cx, count)?;
    let mut tensors = Vec::with_capacity(count);
    for index in 1..count {
        tensors.push(cx.dense(index)?);
    }
    let first = Shape::from_slice(cx.tensor(0)?.shape());
    let mut shapes: Vec<&[usize]> = vec![&first];
    shapes.extend(tensors.iter().map(|tensor| tensor.shape()));
    let shape = broadcast::shape(&shapes)?;
    // Taken where it fits alone: what is taken is gone.
    let own = if shape == first { cx.take_unique(0) } else { None };
    let mut out = match own {
        Some(out) => out,
        None => {
            let start = cx.dense(0)?;
            let mut out = cx.alloc(T::DTYPE, &shape)?;
            own_runs(cx, &mut out, &shape, &first, start.as_slice::<T>()?, &|own, first| {
                run::combine::<T>(own, Operand::Own, first, &|_, v| v);
            })?;
            out
        }
    };
    for other in &tensors {
        own_runs(cx, &mut out, &shape, other.shape(), other.as_slice::<T>()?, step)?;
    }
    cx.cancel().check()?;
    end(out.elements_mut::<T>());
    cx.set(0, out.freeze());
    Ok(())
}

/// An operator of [`fold`]: `a` and `b` in the type that they are computed in, which `W` names.
macro_rules! folded {
    ($op:literal, since $since:literal: $a:ident, $b:ident => $body:expr, $sum:ident, $count:ident => $finish:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, usize::MAX, $crate::attributes::is_number),
            build,
        };

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[])?;
            Ok(Box::new($crate::elementwise::Plain(run)))
        }

        fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            #[allow(unused_imports)]
            use $crate::scalar::{Numeric, Scalar};
            $crate::by_type::by_number!(cx.tensor(0)?.dtype(), T => {
                type W = <T as Numeric>::Wide;
                $crate::variadic::fold::<T>(cx, |$a: W, $b: W| $body, |$sum: W, $count: usize| $finish)
            }, _ => Err($crate::elementwise::wrong_type(cx, 0, "numbers")))
        }
    };
}

pub(crate) use folded;
