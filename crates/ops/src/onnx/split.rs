//! [`Split`](https://onnx.ai/onnx/operators/onnx__Split.html): parts along an axis, of given or equal sizes. In place where a
//! part is dense.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers::{self, Ints};
use crate::movement::{View, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Split",
    versions: (2, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Split {
    axis: i64,
    /// Before version 13 the sizes are an attribute.
    sizes: Option<Ints>,
    parts: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..13 => &["axis", "split"],
            13..18 => &["axis"],
            _ => &["axis", "num_outputs"],
        },
    )?;
    let attributes = &cx.node.attributes;
    let parts = cx.node.outputs.len();
    if let Some(n) = attributes.opt_int("num_outputs")?
        && usize::try_from(n) != Ok(parts)
    {
        return Err(unsupported("num_outputs", n, "the node has another number of outputs"));
    }
    let sizes = attributes.opt_ints("split")?.map(Ints::from_slice);
    Ok(Box::new(Split { axis: attributes.int_or("axis", 0)?, sizes, parts }))
}

impl Kernel for Split {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let axis = heirloom_runtime::normalize_axis(self.axis, shape.len())?;
        let extent = i64::try_from(shape[axis]).unwrap_or(i64::MAX);
        let sizes = match &self.sizes {
            Some(sizes) => sizes.clone(),
            None => integers::opt_list(cx, 1)?.unwrap_or_else(|| equal(extent, self.parts)),
        };
        let total = sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size).filter(|_| size >= 0));
        if sizes.len() != self.parts || total != Some(extent) {
            return Err(KernelError::Other(format!(
                "{} parts of sizes {:?} do not make up axis {axis} of {shape:?}",
                self.parts,
                &sizes[..]
            )));
        }
        let mut first = 0;
        for (index, &size) in sizes.iter().enumerate() {
            let size = integers::extent("the size of a part", size)?;
            if cx.wants(index) {
                let mut view = View::whole(&shape);
                view.shape[axis] = size;
                view.base = if size == 0 { 0 } else { first * view.strides[axis].unsigned_abs() };
                let value = materialize(cx, 0, &view)?;
                cx.set(index, value);
            }
            first += size;
        }
        Ok(())
    }
}

/// Equal sizes, the last one smaller where the extent cannot be divided.
fn equal(extent: i64, parts: usize) -> Ints {
    let parts = i64::try_from(parts).unwrap_or(i64::MAX).max(1);
    let size = extent / parts + i64::from(extent % parts != 0);
    (0..parts).map(|part| (extent - part * size).clamp(0, size)).collect()
}
