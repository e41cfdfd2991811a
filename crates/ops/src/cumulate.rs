//! Running sums and products along an axis.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx};

use crate::attributes::only;
use crate::axis::Along;
use crate::by_type::by_number;
use crate::elementwise::wrong_type;
use crate::integers;
use crate::scalar::{Numeric, Scalar};

/// What is accumulated.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Sums,
    Products,
}

struct Cumulate {
    what: What,
    /// Each result leaves its own element out.
    exclusive: bool,
    reverse: bool,
}

/// The kernel of a node whose input 1 is the axis.
pub(crate) fn build(cx: &BuildCx<'_>, what: What) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["exclusive", "reverse"])?;
    let flag = |name| cx.node.attributes.int_or(name, 0).map(|flag| flag != 0);
    Ok(Box::new(Cumulate { what, exclusive: flag("exclusive")?, reverse: flag("reverse")? }))
}

impl Kernel for Cumulate {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let axis = integers::scalar(cx, 1, "the axis")?;
        let along = Along::new(cx.tensor(0)?.shape(), axis)?;
        by_number!(cx.tensor(0)?.dtype(), T => match self.what {
            What::Sums => self.along::<T>(cx, along, <T as Numeric>::Wide::ZERO, Scalar::plus),
            What::Products => self.along::<T>(cx, along, <T as Numeric>::Wide::ONE, Scalar::times),
        }, _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

impl Cumulate {
    fn along<T: Numeric>(
        &self,
        cx: &mut RunCx<'_>,
        along: Along,
        start: T::Wide,
        f: impl Fn(T::Wide, T::Wide) -> T::Wide,
    ) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        let mut out = cx.alloc(T::DTYPE, input.shape())?;
        let Along { count, inner, .. } = along;
        let block = (count * inner).max(1);
        let (mut sums, mut watch) = (vec![start; inner], cx.cancel().watch());
        for (to, from) in
            out.elements_mut::<T>().chunks_exact_mut(block).zip(input.as_slice::<T>()?.chunks_exact(block))
        {
            sums.fill(start);
            for at in 0..count {
                watch.pass(inner)?;
                let at = if self.reverse { count - 1 - at } else { at };
                let rows = at * inner..(at + 1) * inner;
                for ((o, v), sum) in to[rows.clone()].iter_mut().zip(&from[rows]).zip(&mut sums) {
                    let before = *sum;
                    *sum = f(before, v.up());
                    *o = T::down(if self.exclusive { before } else { *sum });
                }
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
