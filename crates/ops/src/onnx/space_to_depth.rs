//! [`SpaceToDepth`](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html): blocks of the two spatial axes become
//! channels.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::depth_to_space::{block, moved};
use crate::attributes::{only, unsupported};
use crate::movement::{View, dense_strides};
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SpaceToDepth",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SpaceToDepth {
    block: usize,
    /// Whether a block's elements come before the channels, as `DCR` has it.
    blocks_first: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 25 { &["blocksize"] } else { &["blocksize", "mode"] })?;
    let blocks_first = match cx.node.attributes.opt_string("mode")? {
        None | Some(b"DCR") => true,
        Some(b"CRD") => false,
        Some(other) => return Err(unsupported("mode", String::from_utf8_lossy(other), "DCR and CRD are")),
    };
    Ok(Box::new(SpaceToDepth { block: block(cx)?, blocks_first }))
}

impl Kernel for SpaceToDepth {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let b = self.block;
        let shape = crate::movement::shape_of(cx, 0)?;
        let &[n, c, h, w] = &*shape else {
            return Err(misfit("the input is [batch, channels, height, width]", &[&shape]));
        };
        if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
            return Err(misfit("height and width are multiples of the block", &[&shape]));
        }
        let split = [n, c, h / b, b, w / b, b];
        let strides = dense_strides(&split);
        let order = if self.blocks_first { [0, 3, 5, 1, 2, 4] } else { [0, 1, 3, 5, 2, 4] };
        let view = View {
            shape: order.iter().map(|&axis| split[axis]).collect(),
            strides: order.iter().map(|&axis| strides[axis]).collect(),
            base: 0,
        };
        moved(cx, &view, &[n, c * b * b, h / b, w / b])
    }
}
