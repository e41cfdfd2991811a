//! [`DynamicQuantizeLinear`](https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html): UINT8 codes with the scale and
//! the zero point that cover the input's range and zero.

use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Watch};

use crate::attributes::only;
use crate::elementwise::{Plain, set_wanted};
use crate::quantized::{dynamic, dynamic_codes, extremes};
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DynamicQuantizeLinear",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let values = x.as_slice::<f32>()?;
    let mut range = [0.0f32; 2];
    for piece in values.chunks(Watch::PIECE) {
        cx.cancel().check()?;
        let [low, high] = extremes(piece);
        range = [range[0].min(low), range[1].max(high)];
    }
    let (scale, zero) = dynamic(&range);
    let mut out = cx.alloc(DType::Uint8, x.shape())?;
    spread::pieces(cx.cancel(), out.bytes_mut(), |at, out| {
        let codes = dynamic_codes(&values[at..], scale, zero);
        out.iter_mut().zip(codes).for_each(|(o, code)| *o = (code + zero) as u8);
    })?;
    cx.set(0, out.freeze());
    set_wanted(cx, 1, Tensor::scalar(scale));
    set_wanted(cx, 2, Tensor::scalar(zero as u8));
    Ok(())
}
