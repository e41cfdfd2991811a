//! [`LogSoftmax`](https://onnx.ai/onnx/operators/onnx__LogSoftmax.html): `ln(exp(x) / sum(exp(x)))` along an axis; before
//! version 13 over all axes from `axis` on.

use heirloom_runtime::KernelSpec;

use super::softmax::greatest;
use crate::axis::{Line, lines};
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LogSoftmax",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_real),
    build: lines::<LogSoftmax>,
};

struct LogSoftmax;

impl Line for LogSoftmax {
    fn apply<W: Wide>(line: &mut [W]) {
        let greatest = greatest(line);
        let mut sum = W::ZERO;
        line.iter().for_each(|&v| sum += (v - greatest).exp());
        let less = greatest + sum.ln();
        line.iter_mut().for_each(|v| *v = *v - less);
    }
}
