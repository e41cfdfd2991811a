//! `MatMulNBits` of com.microsoft, straight from its constants' bytes.

use std::sync::Arc;

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_ops::NBits;
use heirloom_runtime::{BuildCx, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_simd::{Isa, Level};
use heirloom_types::Value;

use crate::ahead::Follower;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::gemm::{Product, Right, Start};
use crate::lanes;
use crate::matmul::{Activations, Bias, Split, Zeros};

/// Up to so many rows of activations weights stay codes; with more they become floats on the way.
const FEW: usize = 24;

/// `MatMulNBits` of FLOAT activations with constant weights in the order of their blocks.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "MatMulNBits",
    versions: (1, 1),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && may_be_float(cx, 0) && weights(cx).is_some(),
    build: |cx| {
        let portable = Portable::new(cx)?;
        let node = NBits::new(cx)?;
        match weights(cx) {
            Some(weights) => {
                let isa = lanes::selected()?;
                Ok(Box::new(Quantized { node, weights, isa, portable, follower: Arc::default() }))
            }
            None => heirloom_ops::portable(cx),
        }
    },
};

struct Weights {
    codes: Tensor,
    scales: Tensor,
    zero_points: Option<Tensor>,
}

/// The node's constants, if they are all there and as large as the attributes say.
fn weights(cx: &BuildCx<'_>) -> Option<Weights> {
    let given = |index: usize| cx.node.inputs.get(index).copied().flatten().is_some();
    let constant = |index: usize| match cx.constant(index) {
        Some(Value::Tensor(tensor)) if tensor.dense_bytes().is_some() => Some(tensor.clone()),
        _ => None,
    };
    if given(4) {
        return None;
    }
    let (codes, scales) = (constant(1)?, constant(2)?);
    let zero_points = if given(3) { Some(constant(3)?) } else { None };
    let real = matches!(scales.dtype(), DType::Float | DType::Float16 | DType::BFloat16);
    let zeros = zero_points.as_ref().is_none_or(|t| t.dtype() == DType::Uint8 || t.dtype() == scales.dtype());
    let fits = NBits::new(cx).ok()?.check(&codes, &scales, zero_points.as_ref()).is_ok();
    (real && zeros && fits).then_some(Weights { codes, scales, zero_points })
}

struct Quantized {
    node: NBits,
    weights: Weights,
    isa: Isa,
    portable: Portable,
    follower: Arc<Follower>,
}

impl Quantized {
    fn split(&self) -> Split<'_> {
        let NBits { rows: n, columns: k, bits, block } = self.node;
        let Weights { codes, scales, zero_points } = &self.weights;
        let zeros = match zero_points {
            None => Zeros::Middle,
            Some(t) if t.dtype() == DType::Uint8 => Zeros::Packed(t.dense_bytes().unwrap_or(&[])),
            Some(t) => Zeros::Numbers(t.dense_bytes().unwrap_or(&[])),
        };
        let (codes, dtype) = (codes.dense_bytes().unwrap_or(&[]), scales.dtype());
        Split { codes, scales: scales.dense_bytes().unwrap_or(&[]), dtype, zeros, n, k, bits, block }
    }
}

impl Kernel for Quantized {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let NBits { rows: n, columns: k, .. } = self.node;
        if !are_float(cx, [0, 5]) || cx.opt_tensor(5)?.is_some_and(|bias| bias.len() != n) {
            return self.portable.run(cx);
        }
        let x = cx.dense(0)?;
        let mut shape = Shape::from_slice(x.shape());
        match shape.last_mut() {
            Some(last) if *last == k => *last = n,
            _ => return self.portable.run(cx),
        }
        let bias = cx.opt_tensor(5)?.is_some().then(|| cx.dense(5)).transpose()?;
        let bias = bias.as_ref().map(|bias| bias.as_slice::<f32>()).transpose()?;
        let (values, split) = (x.as_slice::<f32>()?, self.split());
        let rows = values.len() / k;
        let mut out = cx.alloc(DType::Float, &shape)?;
        if rows > FEW || !split.is_quick() || self.isa.level() == Level::Portable {
            let start = bias.map_or(Start::Zero, Start::Column);
            let b = Right::Columns(&split);
            let product = Product { isa: self.isa, m: rows, n, k, a: values, lda: k, b, start, ldo: n };
            product.run(out.elements_mut(), cx.team(), cx.cancel())?;
            cx.set(0, out.freeze());
            return Ok(());
        }
        let padded = split.padded();
        let mut arranged = cx.scratch(rows * padded * size_of::<f32>());
        let mut scratch = cx.scratch(Activations::quantized_bytes(rows, padded));
        let team = cx.team();
        self.follower.called(split.soon(team.threads()));
        split.arrange(values, arranged.elements_mut::<f32>());
        let x = arranged.elements_mut::<f32>();
        let activations = Activations::quantized(self.isa, x, rows, padded, scratch.as_mut_slice(), team);
        if rows == 1 {
            team.announce(self.follower.next());
        }
        let bias = bias.map_or(Bias::None, Bias::Row);
        let result = split.run(self.isa, activations, bias, out.elements_mut(), team, cx.cancel());
        cx.release(arranged);
        cx.release(scratch);
        result?;
        cx.set(0, out.freeze());
        Ok(())
    }
}
