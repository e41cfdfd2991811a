//! [`NhwcMaxPool`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.NhwcMaxPool):
//! the greatest of each window of 8-bit codes, channels being the last axis.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::last::{behind, in_front};
use crate::onnx::max_pool::split;
use crate::quantized::{integers, write_codes};
use crate::window::{Window, for_each_tap, for_each_window, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "NhwcMaxPool",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, |dtype| matches!(dtype, DType::Int8 | DType::Uint8)),
    build,
};

struct NhwcMaxPool {
    window: Window,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"])?;
    let attributes = &cx.node.attributes;
    attributes.ints("kernel_shape")?;
    Ok(Box::new(NhwcMaxPool { window: Window::parse(attributes)? }))
}

impl Kernel for NhwcMaxPool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let (shape, codes) = in_front(x.shape(), &integers(cx, 0, &x)?);
        let (count, spatial) = split(&shape)?;
        let axes = self.window.axes(spatial, &self.window.kernel()?)?;
        let to: Shape = shape[..2].iter().copied().chain(outputs(&axes)).collect();
        let (input, output, _) = planes(&axes);
        let mut greatest = vec![0; count * output];
        let mut watch = cx.cancel().watch();
        for plane in 0..count {
            cx.cancel().check()?;
            let x = &codes[plane * input..][..input];
            for_each_window(&mut watch, &axes, |at, index, taps| {
                let mut most = i32::MIN;
                for_each_tap(&axes, index, taps, |place| most = most.max(x[place]));
                greatest[plane * output + at] = most;
            })?;
        }
        let (shape, codes) = behind(&to, &greatest);
        let mut out = cx.alloc(x.dtype(), &shape)?;
        write_codes(&mut out, &codes);
        cx.set(0, out.freeze());
        Ok(())
    }
}
