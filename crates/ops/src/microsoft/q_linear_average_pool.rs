//! [`QLinearAveragePool`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QLinearAveragePool):
//! the mean of each window of a quantized tensor, quantized.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::last::{behind, in_front};
use crate::onnx::max_pool::split;
use crate::q_linear::{read, write};
use crate::window::{Window, for_each_tap, for_each_window, outputs, planes};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearAveragePool",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QLinearAveragePool {
    window: Window,
    include_pad: bool,
    channels_last: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &["auto_pad", "ceil_mode", "channels_last", "count_include_pad", "kernel_shape", "pads", "strides"],
    )?;
    let attributes = &cx.node.attributes;
    attributes.ints("kernel_shape")?;
    Ok(Box::new(QLinearAveragePool {
        window: Window::parse(attributes)?,
        include_pad: attributes.int_or("count_include_pad", 0)? != 0,
        channels_last: attributes.int_or("channels_last", 0)? != 0,
    }))
}

impl Kernel for QLinearAveragePool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (mut shape, mut values) = read(cx, 0)?;
        if self.channels_last {
            (shape, values) = in_front(&shape, &values);
        }
        let (count, spatial) = split(&shape)?;
        let axes = self.window.axes(spatial, &self.window.kernel()?)?;
        let mut to: Shape = shape[..2].iter().copied().chain(outputs(&axes)).collect();
        let (input, output, _) = planes(&axes);
        let mut means = vec![0.0; count * output];
        let mut watch = cx.cancel().watch();
        for plane in 0..count {
            cx.cancel().check()?;
            let x = &values[plane * input..][..input];
            for_each_window(&mut watch, &axes, |at, index, taps| {
                let mut sum = 0.0;
                for_each_tap(&axes, index, taps, |place| sum += x[place]);
                let taps: usize = match self.include_pad {
                    true => axes.iter().zip(index).map(|(axis, &i)| axis.padded_taps(i)).product(),
                    false => taps.iter().map(|(from, to)| to - from).product(),
                };
                means[plane * output + at] = sum / taps as f32;
            })?;
        }
        if self.channels_last {
            (to, means) = behind(&to, &means);
        }
        write(cx, 3, cx.tensor(0)?.dtype(), &to, &means)
    }
}
