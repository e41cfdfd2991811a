//! `MatMul` with an encoded weight B of type FLOAT.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::Source;
use super::gemm::product;
use crate::attributes::only;
use crate::onnx::mat_mul::Shapes;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMul",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| {
        super::only_encoded(cx, 1)
            && Source::of(cx, 1).is_some_and(|source| source.dtype() == heirloom_mem::DType::Float)
    },
    build,
};

struct EncodedMatMul(Source);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    let weight = Source::of(cx, 1).ok_or(BuildError::MissingInput { index: 1 })?;
    Ok(Box::new(EncodedMatMul(weight)))
}

impl Kernel for EncodedMatMul {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let a = cx.dense(0)?;
        let shapes = Shapes::new(a.shape(), self.0.shape())?;
        let a = a.as_slice::<f32>()?;
        let (m, n, k) = (shapes.m, shapes.n, shapes.k);
        let mut out = cx.alloc(heirloom_mem::DType::Float, &shapes.result)?;
        let elements = out.elements_mut::<f32>();
        let mut result = Ok(());
        shapes.each(|at, i, j| {
            if result.is_err() {
                return;
            }
            match product(cx, &a[i * m * k..(i + 1) * m * k], &self.0, (m, n, k), false, j * k * n) {
                Ok(sums) => elements[at * m * n..].iter_mut().zip(sums).for_each(|(o, v)| *o = v),
                Err(error) => result = Err(error),
            }
        });
        result?;
        cx.set(0, out.freeze());
        Ok(())
    }
}
