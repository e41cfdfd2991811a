//! `Gemm` with an encoded weight B of type FLOAT: its rows are decoded one after another.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::Source;
use crate::onnx::gemm::{Gemm, finish};
use crate::product::{add_scaled, dot};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gemm",
    versions: (7, super::NEWEST),
    rank: 0,
    accepts: |cx| {
        super::only_encoded(cx, 1)
            && cx.node.attributes.int_or("transA", 0).is_ok_and(|t| t == 0)
            && Source::of(cx, 1)
                .is_some_and(|s| s.shape().len() == 2 && s.dtype() == heirloom_mem::DType::Float)
    },
    build,
};

struct EncodedGemm {
    node: Gemm,
    weight: Source,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let node = Gemm::new(cx)?;
    let weight = Source::of(cx, 1).ok_or(BuildError::MissingInput { index: 1 })?;
    Ok(Box::new(EncodedGemm { node, weight }))
}

impl Kernel for EncodedGemm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let a = cx.dense(0)?;
        let (m, n, k) = self.node.extents(a.shape(), self.weight.shape())?;
        let a = a.as_slice::<f32>()?;
        let sums = product(cx, a, &self.weight, (m, n, k), self.node.trans_b, 0)?;
        let sums = finish(cx, &self.node, &[m, n], sums)?;
        let mut out = cx.alloc(heirloom_mem::DType::Float, &[m, n])?;
        out.elements_mut::<f32>().iter_mut().zip(sums).for_each(|(o, v)| *o = v);
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// The product of `a` [m, k] with the matrix of `weight` that begins at element `first`: [k, n], or [n, k] where it is
/// `transposed`.
pub(crate) fn product(
    cx: &RunCx<'_>,
    a: &[f32],
    weight: &Source,
    (m, n, k): (usize, usize, usize),
    transposed: bool,
    first: usize,
) -> Result<Vec<f32>, KernelError> {
    let mut sums = vec![0.0; m * n];
    if transposed {
        let mut row = vec![0.0; k];
        for column in 0..n {
            cx.cancel().check()?;
            weight.read(first + column * k, &mut row)?;
            for i in 0..m {
                sums[i * n + column] = dot(&a[i * k..(i + 1) * k], &row);
            }
        }
    } else {
        let mut row = vec![0.0; n];
        for at in 0..k {
            cx.cancel().check()?;
            weight.read(first + at * n, &mut row)?;
            for i in 0..m {
                add_scaled(&mut sums[i * n..(i + 1) * n], a[i * k + at], &row);
            }
        }
    }
    Ok(sums)
}
