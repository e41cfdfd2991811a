//! [`Transpose`](https://onnx.ai/onnx/operators/onnx__Transpose.html): the axes in another order, by default reversed.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use smallvec::SmallVec;

use crate::attributes::{only, unsupported};
use crate::movement::{View, dense_strides, materialize, shape_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Transpose",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Transpose {
    perm: Option<SmallVec<[usize; 6]>>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["perm"])?;
    let perm = cx.node.attributes.opt_ints("perm")?;
    let Some(list) = perm else { return Ok(Box::new(Transpose { perm: None })) };
    let perm: SmallVec<[usize; 6]> =
        list.iter().map(|&axis| usize::try_from(axis).unwrap_or(usize::MAX)).collect();
    if !(0..perm.len()).all(|axis| perm.contains(&axis)) {
        return Err(unsupported("perm", format!("{list:?}"), "it must name each axis once"));
    }
    Ok(Box::new(Transpose { perm: Some(perm) }))
}

impl Kernel for Transpose {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let perm = self.perm.clone().unwrap_or_else(|| (0..from.len()).rev().collect());
        if perm.len() != from.len() {
            return Err(KernelError::Shape {
                what: "`perm` names as many axes as the input has",
                shapes: vec![from, perm.iter().copied().collect()],
            });
        }
        let strides = dense_strides(&from);
        let view = View {
            shape: perm.iter().map(|&axis| from[axis]).collect::<Shape>(),
            strides: perm.iter().map(|&axis| strides[axis]).collect(),
            base: 0,
        };
        let value = materialize(cx, 0, &view)?;
        cx.set(0, value);
        Ok(())
    }
}
