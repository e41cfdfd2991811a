//! [`QAttention`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QAttention):
//! `Attention` whose input and weights are 8-bit codes.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::attention::refuse_variants;
use crate::attributes::only;
use crate::heads::{self, Rules};
use crate::product::product;
use crate::quantized::{floats, integers, zero_points};
use crate::reals::{input, misfit};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QAttention",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QAttention {
    rules: Rules,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &["do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "unidirectional"],
    )?;
    refuse_variants(cx)?;
    Ok(Box::new(QAttention { rules: Rules::read(cx)? }))
}

/// Codes less their zero points, of which there is one or one for each column.
fn centred(cx: &RunCx<'_>, index: usize, zero: usize) -> Result<(Shape, Vec<f64>), KernelError> {
    let x = cx.dense(index)?;
    let (shape, zeros) = (Shape::from_slice(x.shape()), zero_points(cx, zero)?);
    let width = shape.last().copied().unwrap_or(1);
    if zeros.len() != 1 && zeros.len() != width {
        return Err(misfit("there is one zero point, or one for each column", &[&shape, &[zeros.len()]]));
    }
    let codes = integers(cx, index, &x)?.into_iter().enumerate();
    let of = |at: usize| zeros[if zeros.len() == 1 { 0 } else { at % width }];
    Ok((shape, codes.map(|(at, code)| f64::from(code - of(at))).collect()))
}

impl Kernel for QAttention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((x_shape, x), (shape, weights)) = (centred(cx, 0, 6)?, centred(cx, 1, 7)?);
        let (_, _, bias) = input(cx, 2)?;
        let (x_scale, w_scale) = (floats(cx, 3)?, floats(cx, 4)?);
        let (&[batch, rows, k], &[depth, n]) = (&x_shape[..], &shape[..]) else {
            return Err(misfit(
                "the input is [batch, sequence, width], weights are a matrix",
                &[&x_shape, &shape],
            ));
        };
        let scales = w_scale.len() == 1 || w_scale.len() == n;
        if depth != k || n % 3 != 0 || bias.len() != n || x_scale.len() != 1 || !scales {
            let lens = [bias.len(), x_scale.len(), w_scale.len()];
            return Err(misfit("weights, bias and scales fit the input", &[&x_shape, &shape, &lens]));
        }
        let mut sums = vec![0.0; batch * rows * n];
        product(&mut sums, &x, &weights, (n, k), false, cx.cancel())?;
        for (at, sum) in sums.iter_mut().enumerate() {
            let column = at % n;
            let scale = x_scale[0] * w_scale[if w_scale.len() == 1 { 0 } else { column }];
            *sum = *sum * f64::from(scale) + bias[column];
        }
        // There is no bias of scores: no input stands for it.
        let inputs = [5, 8, usize::MAX];
        heads::packed(cx, &self.rules, (DType::Float, [batch, rows]), (&sums, [n / 3; 3]), inputs)
    }
}
