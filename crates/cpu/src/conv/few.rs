//! Convolutions with few output places: their windows as rows, and dot products with each row of the weight.

use heirloom_ops::convolution::Convolution;
use heirloom_ops::window::planes;
use heirloom_runtime::{Cancelled, RunCx};

use super::Call;
use super::columns::Windows;
use crate::gemm::{PANEL, Product, Right, Start, pack_all};

/// Fills `out` for one group: of the input `x`, the weight and the bias.
pub(super) fn run(
    call: &Call<'_>,
    cx: &RunCx<'_>,
    (x, w, bias): (&[f32], &[f32], Option<&[f32]>),
    out: &mut [f32],
) -> Result<(), Cancelled> {
    let Convolution { channels, maps, ref axes, .. } = *call.shape;
    let (_, output, kernel) = planes(axes);
    let depth = channels * kernel;
    let mut panel = vec![0.0; depth * PANEL];
    pack_all(&Windows { x, axes }, depth, output, &mut panel);
    let mut rows = vec![0.0; output * depth];
    for (at, row) in rows.chunks_exact_mut(depth).enumerate() {
        row.iter_mut().zip(panel.chunks_exact(PANEL)).for_each(|(r, p)| *r = p[at]);
    }
    let product = Product {
        isa: call.isa,
        m: maps,
        n: output,
        k: depth,
        a: w,
        lda: depth,
        b: Right::Lines(&rows, depth),
        start: bias.map_or(Start::Zero, Start::Row),
        ldo: output,
    };
    product.run(out, cx.team(), cx.cancel())
}
