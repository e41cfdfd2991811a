//! `DynamicQuantizeMatMul`: a product whose left side is quantized on the way, plus a bias.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::onnx::mat_mul::Shapes;
use crate::onnx::mat_mul_integer::centred;
use crate::product::product;
use crate::quantized::{dynamic, dynamic_codes, floats};
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "DynamicQuantizeMatMul",
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
    let a = cx.dense(0)?;
    let values = a.as_slice::<f32>()?;
    let (b, codes) = centred(cx, 1, 3, false)?;
    let shapes = Shapes::new(a.shape(), b.shape())?;
    let (m, n, k) = (shapes.m, shapes.n, shapes.k);
    let b_scales = floats(cx, 2)?;
    let bias = cx.opt_tensor(4)?.is_some().then(|| floats(cx, 4)).transpose()?;
    let fits = |len: usize| len == 1 || len == n;
    if !fits(b_scales.len()) || bias.as_ref().is_some_and(|b| b.len() != n) {
        return Err(misfit("there is one scale, or one for each column of B", &[&shapes.result]));
    }
    let (scale, zero) = dynamic(values);
    let own: Vec<i32> = dynamic_codes(values, scale, zero).collect();
    let mut sums = vec![0; shapes.result.iter().product()];
    let mut result = Ok(());
    shapes.each(|at, i, j| {
        if result.is_ok() {
            let (a, b) = (&own[i * m * k..][..m * k], &codes[j * k * n..][..k * n]);
            result = product(&mut sums[at * m * n..][..m * n], a, b, (n, k), false, cx.cancel());
        }
    });
    result?;
    let mut out = cx.alloc(DType::Float, &shapes.result)?;
    for (at, (o, sum)) in out.elements_mut::<f32>().iter_mut().zip(sums).enumerate() {
        let scale = scale * b_scales[at % n % b_scales.len()];
        *o = sum as f32 * scale + bias.as_ref().map_or(0.0, |b| b[at % n]);
    }
    cx.set(0, out.freeze());
    Ok(())
}
