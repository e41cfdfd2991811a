//! [`QLinearSoftmax`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QLinearSoftmax):
//! `Softmax` of a quantized tensor, quantized; before opset 13 over all axes from `axis` on.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::axis::Along;
use crate::q_linear::{read, write};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearSoftmax",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QLinearSoftmax {
    axis: i64,
    flat: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis", "opset"])?;
    let attributes = &cx.node.attributes;
    let flat = attributes.int("opset")? < 13;
    Ok(Box::new(QLinearSoftmax { axis: attributes.int_or("axis", -1)?, flat }))
}

impl Kernel for QLinearSoftmax {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, mut values) = read(cx, 0)?;
        let mut along = Along::new(&shape, self.axis)?;
        if self.flat {
            along = Along { outer: along.outer, count: along.count * along.inner, inner: 1 };
        }
        for first in along.lines() {
            let places = || (first..).step_by(along.inner).take(along.count);
            let greatest = places().map(|at| values[at]).fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = places().map(|at| (values[at] - greatest).exp()).sum();
            places().for_each(|at| values[at] = (values[at] - greatest).exp() / sum);
        }
        write(cx, 3, cx.tensor(0)?.dtype(), &shape, &values)
    }
}
