//! Operators that work along one axis.

use heirloom_mem::{Element, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx, Watch, normalize_axis};

use crate::attributes::only;
use crate::by_type::by_real;
use crate::elementwise::wrong_type;
use crate::real::Real;
use crate::spread;

/// An axis in the midst of others: `outer` blocks of `count` rows of `inner` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Along {
    pub(crate) outer: usize,
    pub(crate) count: usize,
    pub(crate) inner: usize,
}

impl Along {
    /// The axis `axis`, which may count from the end, of `shape`.
    pub(crate) fn new(shape: &[usize], axis: i64) -> Result<Along, KernelError> {
        let axis = normalize_axis(axis, shape.len())?;
        Ok(Along {
            outer: shape[..axis].iter().product(),
            count: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        })
    }

    /// The lines along the axis: where each begins. Its elements are `inner` apart.
    pub(crate) fn lines(self) -> impl Iterator<Item = usize> {
        let lines = if self.count == 0 { 0 } else { self.outer };
        (0..lines).flat_map(move |block| (0..self.inner).map(move |at| block * self.count * self.inner + at))
    }
}

/// Softmax and its kin: what becomes of each line.
pub(crate) trait Line: Send + Sync + 'static {
    fn apply<W: crate::real::num::Wide>(line: &mut [W]);
}

/// A kernel that applies `L` to each line.
struct Lines<L> {
    axis: i64,
    /// Before version 13: all axes from `axis` on are one.
    flat: bool,
    line: std::marker::PhantomData<L>,
}

/// The kernel of a node with the attribute `axis`.
pub(crate) fn lines<L: Line>(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    let flat = cx.opset < 13;
    let axis = cx.node.attributes.int_or("axis", if flat { 1 } else { -1 })?;
    Ok(Box::new(Lines::<L> { axis, flat, line: std::marker::PhantomData }))
}

impl<L: Line> Kernel for Lines<L> {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_real!(cx.tensor(0)?.dtype(), T => self.real::<T>(cx),
            _ => Err(wrong_type(cx, 0, "floating-point numbers")))
    }
}

impl<L: Line> Lines<L> {
    fn real<T: Real>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = Shape::from_slice(cx.tensor(0)?.shape());
        // A scalar is a vector of one element.
        let full = if shape.is_empty() { Shape::from_slice(&[1]) } else { shape.clone() };
        let along = if self.flat {
            // The axis may be the rank: then each element is a line.
            let rank = i64::try_from(full.len()).unwrap_or(i64::MAX);
            let axis = if self.axis == rank { full.len() } else { normalize_axis(self.axis, full.len())? };
            Along { outer: full[..axis].iter().product(), count: full[axis..].iter().product(), inner: 1 }
        } else {
            Along::new(&full, self.axis)?
        };
        let mut out = owned::<T>(cx)?;
        let block = along.count * along.inner;
        spread::rows((cx.team(), cx.cancel()), out.elements_mut::<T>(), block, &|values| {
            let mut line = vec![T::Wide::default(); along.count];
            let mut watch = cx.cancel().watch();
            for block in values.chunks_exact_mut(block.max(1)) {
                for first in 0..along.inner {
                    // What is left out here is noticed below.
                    if watch.pass(2 * along.count).is_err() {
                        return;
                    }
                    let elements = block[first..].iter().step_by(along.inner);
                    line.iter_mut().zip(elements).for_each(|(to, v)| *to = v.widen());
                    L::apply(&mut line);
                    let elements = block[first..].iter_mut().step_by(along.inner);
                    elements.zip(&line).for_each(|(v, &wide)| *v = T::narrow(wide));
                }
            }
        })?;
        cx.cancel().check()?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// Input 0 to write into: itself where nobody else needs it, else a copy.
pub(crate) fn owned<T: Element>(cx: &mut RunCx<'_>) -> Result<heirloom_mem::TensorMut, KernelError> {
    if let Some(out) = cx.take_unique(0) {
        return Ok(out);
    }
    let input = cx.dense(0)?;
    let mut out = cx.alloc(T::DTYPE, input.shape())?;
    let pieces =
        out.elements_mut::<T>().chunks_mut(Watch::PIECE).zip(input.as_slice::<T>()?.chunks(Watch::PIECE));
    for (to, from) in pieces {
        cx.cancel().check()?;
        to.iter_mut().zip(from).for_each(|(o, &v)| *o = v);
    }
    Ok(out)
}
