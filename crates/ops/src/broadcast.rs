//! ONNX's multidirectional broadcasting, worked out once for all operators.

use heirloom_mem::Shape;
use heirloom_runtime::{Cancelled, KernelError, Watch};
use smallvec::SmallVec;

/// The common shape of `shapes`: ranks are filled up with 1 in front, and each extent is 1 or the common one.
///
/// # Errors
/// When two extents differ and neither is 1.
pub(crate) fn shape(shapes: &[&[usize]]) -> Result<Shape, KernelError> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut common = Shape::from_elem(1, rank);
    for s in shapes {
        for (c, &d) in common[rank - s.len()..].iter_mut().zip(*s) {
            if *c == 1 {
                *c = d;
            } else if d != 1 && d != *c {
                return Err(KernelError::Shape {
                    what: "shapes cannot be broadcast together",
                    shapes: shapes.iter().map(|s| Shape::from_slice(s)).collect(),
                });
            }
        }
    }
    Ok(common)
}

/// How `N` dense operands are walked to fill a dense result: an outer counter over inner runs.
pub(crate) struct Walk<const N: usize> {
    /// Extents of the outer counter, outermost first.
    outer: SmallVec<[usize; 6]>,
    /// Per outer axis, each operand's stride in elements.
    strides: SmallVec<[[usize; N]; 6]>,
    /// Elements per run.
    pub(crate) run: usize,
    /// Each operand's stride within a run: 0 (one element for the whole run) or 1.
    pub(crate) step: [usize; N],
    total: usize,
}

impl<const N: usize> Walk<N> {
    /// A walk over `operands`, whose shapes broadcast to `common`.
    pub(crate) fn new(common: &[usize], operands: [&[usize]; N]) -> Walk<N> {
        let rank = common.len();
        let mut axes: SmallVec<[(usize, [usize; N]); 6]> = SmallVec::new();
        let mut dense = [1usize; N];
        for axis in (0..rank).rev() {
            let extent = common[axis];
            let mut stride = [0; N];
            for (at, shape) in operands.iter().enumerate() {
                let own = (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
                if own != 1 {
                    stride[at] = dense[at];
                    dense[at] *= own;
                }
            }
            if extent == 1 {
                continue;
            }
            // The axis continues the one inside it where each operand goes on with the same stride.
            match axes.last_mut() {
                Some((inner, inner_stride)) if (0..N).all(|at| stride[at] == inner_stride[at] * *inner) => {
                    *inner *= extent;
                }
                _ => axes.push((extent, stride)),
            }
        }
        let (run, step) = match axes.first() {
            Some(&(extent, stride)) if stride.iter().all(|&s| s <= 1) => {
                axes.remove(0);
                (extent, stride)
            }
            _ => (1, [0; N]),
        };
        axes.reverse();
        Walk {
            outer: axes.iter().map(|(extent, _)| *extent).collect(),
            strides: axes.iter().map(|(_, stride)| *stride).collect(),
            run,
            step,
            total: common.iter().product(),
        }
    }

    /// Calls `f` for each run with where it begins in the result and in each operand.
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, [usize; N])) {
        let all = self.visit(&mut |at, offsets| {
            f(at, offsets);
            Ok(())
        });
        debug_assert_eq!(all, Ok(()));
    }

    /// Calls `f` for each run, or each piece of a long one, with where it begins in the result and in each operand, and
    /// its length.
    ///
    /// # Errors
    /// When the call is cancelled: then some runs are left out.
    pub(crate) fn pieces(
        &self,
        watch: &mut Watch<'_>,
        mut f: impl FnMut(usize, [usize; N], usize),
    ) -> Result<(), Cancelled> {
        self.visit(&mut |at, offsets| {
            let mut done = 0;
            while done < self.run {
                let piece = (self.run - done).min(Watch::PIECE);
                watch.pass(piece)?;
                f(at + done, std::array::from_fn(|i| offsets[i] + done * self.step[i]), piece);
                done += piece;
            }
            Ok(())
        })
    }

    /// Compiled once for all operators.
    fn visit(&self, f: &mut dyn FnMut(usize, [usize; N]) -> Result<(), Cancelled>) -> Result<(), Cancelled> {
        if self.total == 0 {
            return Ok(());
        }
        let mut counter: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer.len());
        let mut offsets = [0; N];
        let mut at = 0;
        loop {
            f(at, offsets)?;
            at += self.run;
            let mut axis = self.outer.len();
            loop {
                if axis == 0 {
                    return Ok(());
                }
                axis -= 1;
                counter[axis] += 1;
                for (offset, stride) in offsets.iter_mut().zip(self.strides[axis]) {
                    *offset += stride;
                }
                if counter[axis] < self.outer[axis] {
                    break;
                }
                for (offset, stride) in offsets.iter_mut().zip(self.strides[axis]) {
                    *offset -= stride * counter[axis];
                }
                counter[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Walk, shape};

    fn starts<const N: usize>(walk: &Walk<N>) -> Vec<(usize, [usize; N])> {
        let mut list = Vec::new();
        walk.for_each(|at, offsets| list.push((at, offsets)));
        list
    }

    #[test]
    fn extents_of_one_stretch_and_missing_axes_count_as_one() {
        assert_eq!(&shape(&[&[2, 1, 3], &[4, 1]]).unwrap()[..], [2, 4, 3]);
        assert_eq!(&shape(&[&[], &[5]]).unwrap()[..], [5]);
        assert_eq!(&shape(&[&[0, 3], &[1, 3]]).unwrap()[..], [0, 3]);
        assert!(shape(&[&[2], &[3]]).is_err());
    }

    #[test]
    fn equal_shapes_are_one_run() {
        let walk = Walk::new(&[2, 3, 4], [&[2, 3, 4], &[2, 3, 4]]);
        assert_eq!((walk.run, walk.step), (24, [1, 1]));
        assert_eq!(starts(&walk), [(0, [0, 0])]);
    }

    #[test]
    fn a_row_is_repeated_for_each_outer_index() {
        let walk = Walk::new(&[2, 3], [&[2, 3], &[3]]);
        assert_eq!((walk.run, walk.step), (3, [1, 1]));
        assert_eq!(starts(&walk), [(0, [0, 0]), (3, [3, 0])]);
    }

    #[test]
    fn a_column_holds_still_within_a_run() {
        let walk = Walk::new(&[2, 3], [&[2, 3], &[2, 1]]);
        assert_eq!((walk.run, walk.step), (3, [1, 0]));
        assert_eq!(starts(&walk), [(0, [0, 0]), (3, [3, 1])]);
    }

    #[test]
    fn nothing_is_walked_where_an_extent_is_zero() {
        assert_eq!(starts(&Walk::new(&[2, 0], [&[2, 0], &[1, 1]])), []);
    }
}
