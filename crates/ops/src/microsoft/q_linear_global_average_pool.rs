//! `QLinearGlobalAveragePool`: the mean over all spatial axes of a quantized tensor, quantized.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::elementwise::Plain;
use crate::onnx::max_pool::split;
use crate::q_linear::{read, write};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearGlobalAveragePool",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["channels_last"])?;
    if cx.node.attributes.int_or("channels_last", 0)? != 0 {
        return Err(unsupported("channels_last", 1, "channels are axis 1"));
    }
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (shape, values) = read(cx, 0)?;
    let (_, spatial) = split(&shape)?;
    let plane = spatial.iter().product::<usize>().max(1);
    let means: Vec<f32> = values.chunks_exact(plane).map(|p| p.iter().sum::<f32>() / plane as f32).collect();
    let out: Shape = shape.iter().enumerate().map(|(axis, &d)| if axis < 2 { d } else { 1 }).collect();
    write(cx, 3, cx.tensor(0)?.dtype(), &out, &means)
}
