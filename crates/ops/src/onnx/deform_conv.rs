//! [`DeformConv`](https://onnx.ai/onnx/operators/onnx__DeformConv.html): a convolution whose taps are moved by
//! offsets (between elements, too) and weighted by a mask.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::conv::{ATTRIBUTES, groups};
use crate::attributes::{only, unsupported};
use crate::product::product;
use crate::reals::{input, misfit, opt_input, written};
use crate::window::{Window, for_each_index, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DeformConv",
    versions: (19, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct DeformConv {
    window: Window,
    groups: usize,
    offset_groups: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[&ATTRIBUTES[..], &["offset_group"]].concat())?;
    let offset_groups = cx.node.attributes.int_or("offset_group", 1)?;
    Ok(Box::new(DeformConv {
        window: Window::parse(&cx.node.attributes)?,
        groups: groups(cx)?,
        offset_groups: usize::try_from(offset_groups)
            .ok()
            .filter(|&g| g > 0)
            .ok_or_else(|| unsupported("offset_group", offset_groups, "it is at least 1"))?,
    }))
}

/// The element at a place between elements; zeros outside.
fn interpolated(x: &[f64], extents: &[usize], place: &[f64]) -> f64 {
    let mut sum = 0.0;
    for corner in 0..1usize << place.len() {
        let (mut weight, mut at, mut inside) = (1.0, 0, true);
        for (axis, (&p, &extent)) in place.iter().zip(extents).enumerate() {
            let upper = corner >> axis & 1 == 1;
            let base = p.floor();
            let i = if upper { base + 1.0 } else { base };
            weight *= if upper { p - base } else { 1.0 - (p - base) };
            inside &= i >= 0.0 && i < extent as f64;
            at = at * extent + if inside { i as usize } else { 0 };
        }
        if inside {
            sum += weight * x[at];
        }
    }
    sum
}

impl Kernel for DeformConv {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, x_shape, x), (_, w_shape, w)) = (input(cx, 0)?, input(cx, 1)?);
        let (_, offset_shape, offsets) = input(cx, 2)?;
        let fault =
            || misfit("input, weight and offsets fit each other", &[&x_shape, &w_shape, &offset_shape]);
        let (&[batch, channels, ref spatial @ ..], &[maps, depth, ref kernel @ ..]) = (&*x_shape, &*w_shape)
        else {
            return Err(fault());
        };
        let axes = self.window.axes(spatial, kernel)?;
        let (input_plane, plane, taps) = planes(&axes);
        let rank = axes.len();
        let expected: Shape =
            [batch, self.offset_groups * taps * rank].into_iter().chain(outputs(&axes)).collect();
        if depth * self.groups != channels
            || !maps.is_multiple_of(self.groups)
            || offset_shape != expected
            || !channels.is_multiple_of(self.offset_groups)
        {
            return Err(fault());
        }
        let mask = opt_input(cx, 4)?;
        if mask.as_ref().is_some_and(|m| m.2.len() != batch * self.offset_groups * taps * plane) {
            return Err(misfit("the mask has one element for each tap and place", &[&expected]));
        }
        let bias = opt_input(cx, 3)?;
        let out_shape: Shape = outputs(&axes).collect();
        let kernel_shape: Shape = axes.iter().map(|a| a.kernel).collect();
        let per_offset = channels / self.offset_groups;
        let mut columns = vec![0.0; depth * taps * plane];
        let mut sums = vec![0.0; batch * maps * plane];
        let per_group = maps / self.groups;
        let mut place = vec![0.0; rank];
        let (mut watch, mut on) = (cx.cancel().watch(), Ok(()));
        for b in 0..batch {
            for group in 0..self.groups {
                for c in 0..depth {
                    let channel = group * depth + c;
                    let offset_group = b * self.offset_groups + channel / per_offset;
                    let x = &x[(b * channels + channel) * input_plane..][..input_plane];
                    for_each_index(&kernel_shape, |tap, k| {
                        on = on.and_then(|()| watch.pass(8 * plane));
                        if on.is_err() {
                            return;
                        }
                        for_each_index(&out_shape, |at, index| {
                            for (axis, p) in place.iter_mut().enumerate() {
                                let a = &axes[axis];
                                let offset =
                                    offsets[((offset_group * taps + tap) * rank + axis) * plane + at];
                                let base = (index[axis] * a.stride + k[axis] * a.dilation) as f64;
                                *p = base - a.before as f64 + offset;
                            }
                            let factor =
                                mask.as_ref().map_or(1.0, |m| m.2[(offset_group * taps + tap) * plane + at]);
                            columns[(c * taps + tap) * plane + at] =
                                factor * interpolated(x, spatial, &place);
                        });
                    });
                    on?;
                }
                let w = &w[group * per_group * depth * taps..][..per_group * depth * taps];
                let out = &mut sums[(b * maps + group * per_group) * plane..][..per_group * plane];
                product(out, w, &columns, (plane, depth * taps), false, cx.cancel())?;
            }
        }
        if let Some((_, shape, bias)) = bias {
            if *shape != [maps] {
                return Err(misfit("the bias has one element for each output channel", &[&shape]));
            }
            for (at, out) in sums.chunks_exact_mut(plane.max(1)).enumerate() {
                out.iter_mut().for_each(|o| *o += bias[at % maps]);
            }
        }
        let shape: Shape = [batch, maps].into_iter().chain(outputs(&axes)).collect();
        let out = written(cx, dtype, &shape, &sums)?;
        cx.set(0, out);
        Ok(())
    }
}
