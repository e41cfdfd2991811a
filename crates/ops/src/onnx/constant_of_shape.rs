//! [`ConstantOfShape`](https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html): a tensor of one value, by default FLOAT 0.

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers;
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ConstantOfShape",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Filled {
    value: Tensor,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["value"])?;
    let value = match cx.node.attributes.opt_tensor("value")? {
        None => Tensor::scalar(0.0f32),
        Some(value) if value.len() == 1 => value.clone(),
        Some(value) => {
            return Err(unsupported("value", format!("{:?}", value.shape()), "it must have one element"));
        }
    };
    Ok(Box::new(Filled { value }))
}

impl Kernel for Filled {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut shape = Shape::new();
        for &extent in &integers::list(cx, 0)? {
            shape.push(integers::extent("an extent", extent)?);
        }
        let mut out = cx.alloc(self.value.dtype(), &shape)?;
        let element = self.value.dense_bytes().unwrap_or(&[]);
        match self.value.dtype().bit_width() {
            // One code in each part of a byte.
            Some(bits @ (2 | 4)) => {
                let code = element.first().copied().unwrap_or(0) & ((1 << bits) - 1);
                let byte = if bits == 4 { code * 0x11 } else { code * 0x55 };
                spread::pieces(cx.cancel(), out.bytes_mut(), |_, piece| piece.fill(byte))?;
                let rest = shape.iter().product::<usize>() * bits as usize % 8;
                if let Some(last) = out.bytes_mut().last_mut().filter(|_| rest != 0) {
                    *last &= (1 << rest) - 1;
                }
            }
            _ => {
                let mut watch = cx.cancel().watch();
                for to in out.bytes_mut().chunks_exact_mut(element.len().max(1)) {
                    watch.pass(1)?;
                    to.iter_mut().zip(element).for_each(|(o, &byte)| *o = byte);
                }
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
