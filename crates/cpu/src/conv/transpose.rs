//! `ConvTranspose` of FLOAT in one or two dimensions: a product gives what each input element spreads, tap by tap, which is
//! then added to the output.
#![allow(unsafe_code)]

use heirloom_mem::{DType, Shape};
use heirloom_ops::convolution::Transposed;
use heirloom_ops::window::FoldAxis;
use heirloom_runtime::{Kernel, KernelError, KernelSpec, RunCx};
use heirloom_simd::Isa;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::gemm::{Matrix, Product, Right, Start, share};
use crate::lanes;

/// ONNX `ConvTranspose` of FLOAT.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ConvTranspose",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && (0..2).all(|i| may_be_float(cx, i)),
    build: |cx| {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        Ok(Box::new(ConvTranspose { node: Transposed::parse(cx)?, isa, portable }))
    },
};

struct ConvTranspose {
    node: Transposed,
    isa: Isa,
    portable: Portable,
}

const ONE: FoldAxis = FoldAxis { extent: 1, blocks: 1, stride: 1, dilation: 1, before: 0 };

impl Kernel for ConvTranspose {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..3) {
            return self.portable.run(cx);
        }
        let (x, w) = (cx.dense(0)?, cx.dense(1)?);
        let bias = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
        // What does not fit is refused by the portable kernel.
        let (&[batch, channels, ref spatial @ ..], &[rows, maps, ref kernel @ ..]) = (x.shape(), w.shape())
        else {
            return self.portable.run(cx);
        };
        let groups = self.node.groups;
        let fits = rows == channels
            && channels.is_multiple_of(groups)
            && !x.is_empty()
            && !w.is_empty()
            && bias.as_ref().is_none_or(|b| b.shape() == [maps * groups]);
        if !fits || !(1..=2).contains(&spatial.len()) {
            return self.portable.run(cx);
        }
        let axes = self.node.axes(spatial, kernel)?;
        let (down, along) = match *axes {
            [along] => (ONE, along),
            [down, along] => (down, along),
            _ => return self.portable.run(cx),
        };
        let (kernel_down, kernel_along) =
            if kernel.len() == 1 { (1, kernel[0]) } else { (kernel[0], kernel[1]) };
        let (depth, plane, taps) =
            (channels / groups, down.blocks * along.blocks, kernel_down * kernel_along);
        let out_plane = down.extent * along.extent;
        let shape: Shape =
            [batch, maps * groups].into_iter().chain(axes.iter().map(|axis| axis.extent)).collect();
        let mut out = cx.alloc(DType::Float, &shape)?;
        let (xs, ws) = (x.as_slice::<f32>()?, w.as_slice::<f32>()?);
        let bias = bias.as_ref().map(|b| b.as_slice::<f32>()).transpose()?;
        let mut spreads = vec![0.0f32; maps * taps * plane];
        let mut turned = vec![0.0f32; maps * taps * depth];
        for part in 0..batch * groups {
            let group = part % groups;
            let own = &ws[group * depth * maps * taps..][..depth * maps * taps];
            for (channel, row) in own.chunks_exact(maps * taps).enumerate() {
                turned[channel..].iter_mut().step_by(depth).zip(row).for_each(|(t, &v)| *t = v);
            }
            let columns = Matrix { data: &xs[part * depth * plane..][..depth * plane], stride: plane };
            let product = Product {
                isa: self.isa,
                m: maps * taps,
                n: plane,
                k: depth,
                a: &turned,
                lda: depth,
                b: Right::Columns(&columns),
                start: Start::Zero,
                ldo: plane,
            };
            product.run(&mut spreads, cx.team(), cx.cancel())?;
            let to = &mut out.elements_mut::<f32>()[part * maps * out_plane..][..maps * out_plane];
            if to.is_empty() {
                continue;
            }
            let to = DisjointMut::new(to);
            let (tasks, each) = share(maps, maps * taps * plane * 2, cx.team().threads());
            cx.team().run(tasks, &|task| {
                for map in task * each..((task + 1) * each).min(maps) {
                    // SAFETY: each map is written by one task.
                    let to = unsafe { to.part(map * out_plane..(map + 1) * out_plane) };
                    to.fill(bias.map_or(0.0, |b| b[group * maps + map]));
                    for (tap, spread) in
                        spreads[map * taps * plane..].chunks_exact(plane).enumerate().take(taps)
                    {
                        add(spread, (tap / kernel_along, tap % kernel_along), &down, &along, to);
                    }
                }
            });
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// Adds what all elements spread to tap (`ky`, `kx`) of their windows.
fn add(spread: &[f32], (ky, kx): (usize, usize), down: &FoldAxis, along: &FoldAxis, out: &mut [f32]) {
    let shift = (kx * along.dilation) as isize - along.before;
    // Elements whose place lies in the output.
    let first = (-shift).max(0).unsigned_abs().div_ceil(along.stride).min(along.blocks);
    let end = (along.extent as isize - shift).max(0).unsigned_abs().div_ceil(along.stride);
    let end = end.clamp(first, along.blocks);
    if first == end {
        return;
    }
    for (row, x) in spread.chunks_exact(along.blocks).enumerate() {
        let place = (row * down.stride + ky * down.dilation) as isize - down.before;
        let Some(y) = usize::try_from(place).ok().filter(|&y| y < down.extent) else { continue };
        let from = (first * along.stride).strict_add_signed(shift);
        let to = &mut out[y * along.extent..][..along.extent][from..];
        let x = &x[first..end];
        match along.stride {
            1 => to.iter_mut().zip(x).for_each(|(t, &v)| *t += v),
            2 => to.chunks_mut(2).zip(x).for_each(|(t, &v)| t[0] += v),
            stride => to.iter_mut().step_by(stride).zip(x).for_each(|(t, &v)| *t += v),
        }
    }
}
