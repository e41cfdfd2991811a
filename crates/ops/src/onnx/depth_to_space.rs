//! [`DepthToSpace`](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html): channels become blocks of the two
//! spatial axes.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::movement::{View, dense_strides, materialize};
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DepthToSpace",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct DepthToSpace {
    block: usize,
    /// Whether a channel's blocks come before the channels, as `DCR` has it.
    blocks_first: bool,
}

/// The attribute `blocksize`.
pub(crate) fn block(cx: &BuildCx<'_>) -> Result<usize, BuildError> {
    let block = cx.node.attributes.int("blocksize")?;
    usize::try_from(block)
        .ok()
        .filter(|&b| b > 0)
        .ok_or_else(|| unsupported("blocksize", block, "it is at least 1"))
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 11 { &["blocksize"] } else { &["blocksize", "mode"] })?;
    let blocks_first = match cx.node.attributes.opt_string("mode")? {
        None | Some(b"DCR") => true,
        Some(b"CRD") => false,
        Some(other) => return Err(unsupported("mode", String::from_utf8_lossy(other), "DCR and CRD are")),
    };
    Ok(Box::new(DepthToSpace { block: block(cx)?, blocks_first }))
}

impl Kernel for DepthToSpace {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let b = self.block;
        let shape = crate::movement::shape_of(cx, 0)?;
        let &[n, c, h, w] = &*shape else {
            return Err(misfit("the input is [batch, channels, height, width]", &[&shape]));
        };
        if !c.is_multiple_of(b * b) {
            return Err(misfit("the channels are a multiple of the block's elements", &[&shape]));
        }
        let depth = c / (b * b);
        // The channel axis as three.
        let (split, [d, y, x]) = match self.blocks_first {
            true => ([n, b, b, depth, h, w], [3, 1, 2]),
            false => ([n, depth, b, b, h, w], [1, 2, 3]),
        };
        let strides = dense_strides(&split);
        let order = [0, d, 4, y, 5, x];
        let view = View {
            shape: order.iter().map(|&axis| split[axis]).collect(),
            strides: order.iter().map(|&axis| strides[axis]).collect(),
            base: 0,
        };
        moved(cx, &view, &[n, depth, h * b, w * b])
    }
}

/// Sets the output to what `view` sees, in another shape.
pub(crate) fn moved(cx: &mut RunCx<'_>, view: &View, shape: &[usize]) -> Result<(), KernelError> {
    let value = materialize(cx, 0, view)?;
    let value = match value.as_tensor() {
        Some(tensor) => tensor.reshape(shape)?.into(),
        None => value,
    };
    cx.set(0, value);
    Ok(())
}
