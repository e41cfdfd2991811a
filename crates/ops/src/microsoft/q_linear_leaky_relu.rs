//! `QLinearLeakyRelu`: the leaky ReLU of a quantized tensor, quantized.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::q_linear::{read, write};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearLeakyRelu",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QLinearLeakyRelu {
    alpha: f32,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["alpha"])?;
    Ok(Box::new(QLinearLeakyRelu { alpha: cx.node.attributes.float_or("alpha", 0.01)? }))
}

impl Kernel for QLinearLeakyRelu {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, mut values) = read(cx, 0)?;
        values.iter_mut().filter(|v| **v < 0.0).for_each(|v| *v *= self.alpha);
        write(cx, 3, cx.tensor(0)?.dtype(), &shape, &values)
    }
}
