//! Where the greatest or smallest element along an axis stands.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx, normalize_axis};

use crate::attributes::only;
use crate::axis::Along;
use crate::by_type::by_number;
use crate::elementwise::wrong_type;
use crate::scalar::{Numeric, Scalar};

struct ArgExtreme {
    greatest: bool,
    axis: i64,
    keep: bool,
    last: bool,
}

/// The kernel of `ArgMax` (`greatest`) or `ArgMin`.
pub(crate) fn build(cx: &BuildCx<'_>, greatest: bool) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 12 { &["axis", "keepdims"] } else { &["axis", "keepdims", "select_last_index"] })?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(ArgExtreme {
        greatest,
        axis: attributes.int_or("axis", 0)?,
        keep: attributes.int_or("keepdims", 1)? != 0,
        last: attributes.int_or("select_last_index", 0)? != 0,
    }))
}

impl Kernel for ArgExtreme {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_number!(cx.tensor(0)?.dtype(), T => match self.greatest {
            true => self.along::<T>(cx, |v, best| v > best || (v.is_nan() && !best.is_nan())),
            false => self.along::<T>(cx, |v, best| v < best || (v.is_nan() && !best.is_nan())),
        }, _ => Err(wrong_type(cx, 0, "numbers")))
    }
}

impl ArgExtreme {
    fn along<T: Numeric>(
        &self,
        cx: &mut RunCx<'_>,
        better: impl Fn(T::Wide, T::Wide) -> bool,
    ) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        let along = Along::new(input.shape(), self.axis)?;
        let axis = normalize_axis(self.axis, input.shape().len())?;
        let mut shape = Shape::from_slice(input.shape());
        if self.keep {
            shape[axis] = 1;
        } else {
            shape.remove(axis);
        }
        if along.count == 0 && along.outer * along.inner != 0 {
            return Err(KernelError::Shape {
                what: "an axis without elements has no greatest or smallest",
                shapes: vec![Shape::from_slice(input.shape())],
            });
        }
        let from = input.as_slice::<T>()?;
        let mut out = cx.alloc(DType::Int64, &shape)?;
        let mut watch = cx.cancel().watch();
        for (o, first) in out.elements_mut::<i64>().iter_mut().zip(along.lines()) {
            watch.pass(along.count)?;
            let mut best = (0, from[first].up());
            for at in 1..along.count {
                let v = from[first + at * along.inner].up();
                if better(v, best.1) || (self.last && !better(best.1, v)) {
                    best = (at, v);
                }
            }
            *o = best.0 as i64;
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
