//! [`Not`](https://onnx.ai/onnx/operators/onnx__Not.html): the contrary of each BOOL.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::{Plain, bools};
use crate::{run, spread};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Not",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(negate)))
}

fn negate(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let input = cx.dense(0)?;
    let mut out = cx.alloc(DType::Bool, input.shape())?;
    spread::pairs((cx.team(), cx.cancel()), out.bytes_mut(), bools(&input, 0)?, &|out, from| {
        run::each(out, from, &|v| u8::from(v == 0));
    })?;
    cx.set(0, out.freeze());
    Ok(())
}
