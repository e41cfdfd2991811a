//! [`Trilu`](https://onnx.ai/onnx/operators/onnx__Trilu.html): the upper or lower triangle of matrices, seen from the k-th
//! diagonal; 0 elsewhere.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Watch};

use crate::attributes::only;
use crate::cells::{Moves, moved, put};
use crate::integers;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Trilu",
    versions: (14, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Trilu {
    upper: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["upper"])?;
    Ok(Box::new(Trilu { upper: cx.node.attributes.int_or("upper", 1)? != 0 }))
}

impl Kernel for Trilu {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let [.., rows, columns] = shape[..] else {
            return Err(KernelError::Shape { what: "a matrix has two axes", shapes: vec![shape] });
        };
        let k = match cx.opt_tensor(1)? {
            Some(_) => integers::scalar(cx, 1, "k")?,
            None => 0,
        };
        let triangle = Triangle { rows, columns, k, upper: self.upper };
        let value = moved(cx, &[0], &shape, &triangle)?;
        cx.set(0, value);
        Ok(())
    }
}

struct Triangle {
    rows: usize,
    columns: usize,
    k: i64,
    upper: bool,
}

impl Moves for Triangle {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        let rows = out.chunks_exact_mut(self.columns.max(1)).zip(inputs[0].chunks_exact(self.columns.max(1)));
        for (at, (out, from)) in rows.enumerate() {
            watch.pass(self.columns)?;
            let row = i64::try_from(at % self.rows).unwrap_or(i64::MAX);
            // The diagonal's own column, and for the lower triangle the one behind it.
            let column = row.saturating_add(self.k).saturating_add(i64::from(!self.upper));
            let column = usize::try_from(column.max(0)).unwrap_or(usize::MAX).min(self.columns);
            let kept = if self.upper { column..self.columns } else { 0..column };
            put(&mut out[kept.clone()], &from[kept]);
        }
        Ok(())
    }
}
