//! [`ConvTranspose`](https://onnx.ai/onnx/operators/onnx__ConvTranspose.html): each input element spreads over a window of
//! the output, weighted; what falls on the same place is added up.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::conv::bias;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::convolution::Transposed;
use crate::elementwise::{common_type, wrong_type};
use crate::product::product;
use crate::real::Real;
use crate::window::{fold, for_each_index};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ConvTranspose",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ConvTranspose(Transposed);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let own = ["output_padding", "output_shape"];
    only(cx, &[&super::conv::ATTRIBUTES[..], &own].concat())?;
    Ok(Box::new(ConvTranspose(Transposed::parse(cx)?)))
}

impl Kernel for ConvTranspose {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(common_type(cx, 2)?, [f32, f16, bf16, f64], T => spread::<T>(cx, &self.0),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn spread<T: Real>(cx: &mut RunCx<'_>, node: &Transposed) -> Result<(), KernelError> {
    let (x, w) = (cx.dense(0)?, cx.dense(1)?);
    let misfit = || KernelError::Shape {
        what: "the input is [batch, channels, spatial…], the weight [channels, maps / groups, kernel…]",
        shapes: vec![Shape::from_slice(x.shape()), Shape::from_slice(w.shape())],
    };
    let (&[batch, channels, ref spatial @ ..], &[rows, maps, ref kernel @ ..]) = (x.shape(), w.shape())
    else {
        return Err(misfit());
    };
    if rows != channels || !channels.is_multiple_of(node.groups) {
        return Err(misfit());
    }
    let axes = node.axes(spatial, kernel)?;
    let (depth, plane) = (channels / node.groups, spatial.iter().product::<usize>());
    let taps: Shape = Shape::from_slice(kernel);
    let kernel: usize = kernel.iter().product();
    let out_plane: usize = axes.iter().map(|a| a.extent).product();
    let shape: Shape = [batch, maps * node.groups].into_iter().chain(axes.iter().map(|a| a.extent)).collect();
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    let mut sums = vec![T::Wide::default(); batch * node.groups * maps * out_plane];
    let xs: Vec<T::Wide> = x.as_slice::<T>()?.iter().map(|v| v.widen()).collect();
    let ws = w.as_slice::<T>()?;
    let mut spreads = vec![T::Wide::default(); maps * kernel * plane];
    let mut turned = vec![T::Wide::default(); maps * kernel * depth];
    let mut watch = cx.cancel().watch();
    for group in 0..node.groups {
        let w = &ws[group * depth * maps * kernel..][..depth * maps * kernel];
        for (channel, row) in w.chunks_exact((maps * kernel).max(1)).enumerate() {
            row.iter().enumerate().for_each(|(at, v)| turned[at * depth + channel] = v.widen());
        }
        for n in 0..batch {
            let part = n * node.groups + group;
            let x = &xs[part * depth * plane..][..depth * plane];
            product(&mut spreads, &turned, x, (plane, depth), false, cx.cancel())?;
            let sums = &mut sums[part * maps * out_plane..][..maps * out_plane];
            for (map, sums) in sums.chunks_exact_mut(out_plane.max(1)).enumerate() {
                watch.pass(kernel * plane)?;
                for_each_index(&taps, |tap, offset| {
                    fold(&spreads[(map * kernel + tap) * plane..][..plane], &axes, offset, sums);
                });
            }
        }
    }
    let bias = bias::<T>(cx, 2, maps * node.groups)?;
    let to = out.elements_mut::<T>().chunks_exact_mut(out_plane.max(1));
    for (at, (to, sums)) in to.zip(sums.chunks_exact(out_plane.max(1))).enumerate() {
        let bias = bias.get(at % (maps * node.groups).max(1)).copied().unwrap_or_default();
        to.iter_mut().zip(sums).for_each(|(t, &s)| *t = T::narrow(s + bias));
    }
    cx.set(0, out.freeze());
    Ok(())
}
