//! [`BitCast`](https://onnx.ai/onnx/operators/onnx__BitCast.html): the same bits as elements of another type of the same width.

use heirloom_mem::{DType, Storage, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{dtype, only, unsupported};
use crate::elementwise::wrong_type;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "BitCast",
    versions: (26, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct BitCast {
    to: DType,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["to"])?;
    match dtype(cx, "to")? {
        Some(DType::String) => Err(unsupported("to", DType::String, "strings have no fixed width")),
        Some(to) => Ok(Box::new(BitCast { to })),
        None => Err(unsupported("to", "nothing", "the type is required")),
    }
}

impl Kernel for BitCast {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = cx.dense(0)?;
        if input.dtype().bit_width() != self.to.bit_width() {
            return Err(wrong_type(cx, 0, &format!("elements as wide as {}", self.to)));
        }
        // BOOL is 0 or 1: other bits are no elements of the type.
        if self.to == DType::Bool && input.dense_bytes().unwrap_or(&[]).iter().any(|&byte| byte > 1) {
            return Err(KernelError::Other("an element is neither 0 nor 1, so it is no BOOL".into()));
        }
        let Storage::Dense(bytes) = input.storage() else {
            return Err(KernelError::Other("a tensor with gaps".into()));
        };
        cx.set(0, Tensor::new(self.to, input.shape(), bytes.clone())?);
        Ok(())
    }
}
