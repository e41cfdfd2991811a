//! [`FusedGemm`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.FusedGemm):
//! `Gemm`, then an activation.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::fused_activation::FusedActivation;
use crate::onnx::gemm::{Gemm, finish};
use crate::product::product;
use crate::reals::{input, turned, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "FusedGemm",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct FusedGemm {
    gemm: Gemm,
    activation: FusedActivation,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let parameters = ["activation_alpha", "activation_beta", "activation_gamma"];
    only(cx, &[&["alpha", "beta", "transA", "transB", "activation"][..], &parameters].concat())?;
    let attributes = &cx.node.attributes;
    let mut given = Vec::new();
    for name in parameters {
        match attributes.opt_float(name)? {
            Some(value) => given.push(value),
            None => break,
        }
    }
    Ok(Box::new(FusedGemm {
        gemm: Gemm::parse(attributes)?,
        activation: FusedActivation::parse(cx, &given)?,
    }))
}

impl Kernel for FusedGemm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, a_shape, mut a), (_, b_shape, b)) = (input(cx, 0)?, input(cx, 1)?);
        let (m, n, k) = self.gemm.extents(&a_shape, &b_shape)?;
        if self.gemm.trans_a {
            a = turned(&a, k, m);
        }
        let mut sums = vec![0.0; m * n];
        product(&mut sums, &a, &b, (n, k), self.gemm.trans_b, cx.cancel())?;
        let mut sums = finish(cx, &self.gemm, &[m, n], sums)?;
        sums.iter_mut().for_each(|sum| *sum = self.activation.of(*sum));
        let out = written(cx, dtype, &[m, n], &sums)?;
        cx.set(0, out);
        Ok(())
    }
}
