//! [`Flatten`](https://onnx.ai/onnx/operators/onnx__Flatten.html): a matrix whose rows are the axes before `axis`.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::movement::{reshape, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Flatten",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Flatten {
    axis: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(Flatten { axis: cx.node.attributes.int_or("axis", 1)? }))
}

impl Kernel for Flatten {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let rank = i64::try_from(from.len()).unwrap_or(i64::MAX);
        // The axis may be the rank: then there is one column.
        let axis = match self.axis {
            axis if axis == rank => from.len(),
            axis => heirloom_runtime::normalize_axis(axis, from.len())?,
        };
        let shape = [from[..axis].iter().product(), from[axis..].iter().product()];
        let value = reshape(cx, 0, &shape)?;
        cx.set(0, value);
        Ok(())
    }
}
