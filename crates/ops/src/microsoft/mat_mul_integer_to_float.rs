//! `MatMulIntegerToFloat`: `MatMulInteger`, times the scales, plus a bias.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::onnx::mat_mul_integer::sums;
use crate::quantized::floats;
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "MatMulIntegerToFloat",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (shapes, sums) = sums(cx, [0, 1], [4, 5])?;
    let (a_scale, b_scales) = (floats(cx, 2)?, floats(cx, 3)?);
    let bias = cx.opt_tensor(6)?.is_some().then(|| floats(cx, 6)).transpose()?;
    let n = shapes.n;
    let fits = |len: usize| len == 1 || len == n;
    if a_scale.len() != 1 || !fits(b_scales.len()) || bias.as_ref().is_some_and(|b| b.len() != n) {
        return Err(misfit("there is one scale, or one for each column of B", &[&shapes.result]));
    }
    let mut out = cx.alloc(DType::Float, &shapes.result)?;
    for (at, (o, sum)) in out.elements_mut::<f32>().iter_mut().zip(sums).enumerate() {
        let scale = a_scale[0] * b_scales[at % n % b_scales.len()];
        *o = sum as f32 * scale + bias.as_ref().map_or(0.0, |b| b[at % n]);
    }
    cx.set(0, out.freeze());
    Ok(())
}
