//! Updates written into a copy of a tensor at places that indices name.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, KernelError, RunCx, Watch};
use heirloom_types::Value;

use crate::attributes::unsupported;
use crate::by_type::by_number;
use crate::cells::{Moves, moved, put};
use crate::elementwise::wrong_type;
use crate::integers;
use crate::movement::shape_of;
use crate::onnx::gather::places;
use crate::scalar::{Numeric, Scalar};

/// What becomes of an element that an update meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reduction {
    Replace,
    Add,
    Multiply,
    Greatest,
    Smallest,
}

/// The attribute `reduction`, which version 16 brought, and 18 some of its values.
pub(crate) fn reduction(cx: &BuildCx<'_>) -> Result<Reduction, BuildError> {
    match cx.node.attributes.opt_string("reduction")? {
        None | Some(b"none") => Ok(Reduction::Replace),
        Some(b"add") => Ok(Reduction::Add),
        Some(b"mul") => Ok(Reduction::Multiply),
        Some(b"max") if cx.opset >= 18 => Ok(Reduction::Greatest),
        Some(b"min") if cx.opset >= 18 => Ok(Reduction::Smallest),
        Some(other) => {
            let known = "none, add and mul are, and from version 18 on max and min";
            Err(unsupported("reduction", String::from_utf8_lossy(other), known))
        }
    }
}

/// For each index of input 1, the flat place in a tensor of shape `data` that has the index's own coordinates but for
/// `axis`, where the index says.
pub(crate) fn element_places(cx: &RunCx<'_>, data: &[usize], axis: usize) -> Result<Vec<usize>, KernelError> {
    let shape = Shape::from_slice(cx.tensor(1)?.shape());
    let fits = shape.len() == data.len()
        && shape.iter().zip(data).enumerate().all(|(at, (i, d))| at == axis || i <= d);
    if !fits {
        return Err(KernelError::Shape {
            what: "indices have the data's rank and reach no further but along the axis",
            shapes: vec![Shape::from_slice(data), shape],
        });
    }
    let along = places(&integers::list(cx, 1)?, data[axis])?;
    let mut strides = Shape::from_elem(1, data.len());
    for at in (0..data.len().saturating_sub(1)).rev() {
        strides[at] = strides[at + 1] * data[at + 1];
    }
    // The place of the index's own coordinates, but for the axis, goes along with them.
    let (mut counter, mut base) = (Shape::from_elem(0, shape.len()), 0);
    let mut list = Vec::with_capacity(along.len());
    let own = |at: usize| if at == axis { 0 } else { strides[at] };
    let mut watch = cx.cancel().watch();
    for place in along {
        watch.pass(1)?;
        list.push(base + place * strides[axis]);
        for at in (0..shape.len()).rev() {
            counter[at] += 1;
            base += own(at);
            if counter[at] < shape[at] {
                break;
            }
            base -= counter[at] * own(at);
            counter[at] = 0;
        }
    }
    Ok(list)
}

struct Replace<'a> {
    starts: &'a [usize],
    run: usize,
}

impl Moves for Replace<'_> {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        for (out, from) in out.chunks_mut(Watch::PIECE).zip(inputs[0].chunks(Watch::PIECE)) {
            watch.pass(out.len())?;
            put(out, from);
        }
        for (update, &at) in inputs[1].chunks_exact(self.run.max(1)).zip(self.starts) {
            watch.pass(self.run)?;
            put(&mut out[at..at + self.run], update);
        }
        Ok(())
    }
}

/// Input 0 with the runs of input `updates` written to where `starts` says, in order.
pub(crate) fn scatter(
    cx: &mut RunCx<'_>,
    updates: usize,
    starts: &[usize],
    run: usize,
    reduction: Reduction,
) -> Result<Value, KernelError> {
    let shape = shape_of(cx, 0)?;
    let count: usize = shape_of(cx, updates)?.iter().product();
    if count != starts.len() * run {
        return Err(KernelError::Other(format!("{count} updates for {} places", starts.len() * run)));
    }
    if reduction == Reduction::Replace {
        return moved(cx, &[0, updates], &shape, &Replace { starts, run });
    }
    by_number!(cx.tensor(0)?.dtype(), T => {
        let from = cx.dense(updates)?;
        let from = from.as_slice::<T>()?;
        let mut out = crate::axis::owned::<T>(cx)?;
        let to = out.elements_mut::<T>();
        let f = |a: <T as Numeric>::Wide, b: <T as Numeric>::Wide| match reduction {
            Reduction::Add => a.plus(b),
            Reduction::Multiply => a.times(b),
            Reduction::Greatest => a.larger(b),
            Reduction::Smallest => a.smaller(b),
            Reduction::Replace => b,
        };
        let mut watch = cx.cancel().watch();
        for (update, &at) in from.chunks_exact(run.max(1)).zip(starts) {
            watch.pass(run)?;
            for (o, &v) in to[at..at + run].iter_mut().zip(update) {
                *o = T::down(f(o.up(), v.up()));
            }
        }
        Ok(out.freeze().into())
    }, _ => Err(wrong_type(cx, 0, "numbers")))
}
