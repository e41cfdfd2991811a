//! `FusedConv`: `Conv`, plus an optional tensor, then an activation.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::convolution::Convolution;
use crate::fused_activation::FusedActivation;
use crate::onnx::conv::{ATTRIBUTES, groups};
use crate::reals::{input, misfit, opt_input, written};
use crate::window::{Window, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "FusedConv",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct FusedConv {
    window: Window,
    groups: usize,
    activation: FusedActivation,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[&ATTRIBUTES[..], &["activation", "activation_params"]].concat())?;
    let parameters = cx.node.attributes.opt_floats("activation_params")?.unwrap_or(&[]);
    Ok(Box::new(FusedConv {
        window: Window::parse(&cx.node.attributes)?,
        groups: groups(cx)?,
        activation: FusedActivation::parse(cx, parameters)?,
    }))
}

impl Kernel for FusedConv {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, x_shape, x), (_, w_shape, w)) = (input(cx, 0)?, input(cx, 1)?);
        let shape = Convolution::new(&x_shape, &w_shape, self.groups, &self.window)?;
        let out_shape = shape.shape();
        let maps = shape.groups * shape.maps;
        let (_, plane, _) = planes(&shape.axes);
        let mut sums = vec![0.0; out_shape.iter().product()];
        shape.run(&x, &w, &mut sums, cx.cancel())?;
        if let Some((_, b_shape, bias)) = opt_input(cx, 2)? {
            if bias.len() != maps {
                return Err(misfit("the bias has one element for each output channel", &[&b_shape]));
            }
            for (at, plane) in sums.chunks_exact_mut(plane.max(1)).enumerate() {
                plane.iter_mut().for_each(|s| *s += bias[at % maps]);
            }
        }
        if let Some((_, z_shape, z)) = opt_input(cx, 3)? {
            if z_shape != out_shape {
                return Err(misfit("what is added has the output's shape", &[&z_shape, &out_shape]));
            }
            sums.iter_mut().zip(z).for_each(|(s, z)| *s += z);
        }
        sums.iter_mut().for_each(|s| *s = self.activation.of(*s));
        let out = written(cx, dtype, &out_shape, &sums)?;
        cx.set(0, out);
        Ok(())
    }
}
