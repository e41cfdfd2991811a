//! [`Softmax`](https://onnx.ai/onnx/operators/onnx__Softmax.html): `exp(x) / sum(exp(x))` along an axis; before version 13
//! over all axes from `axis` on.

use heirloom_runtime::KernelSpec;

use crate::axis::{Line, lines};
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Softmax",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_real),
    build: lines::<Softmax>,
};

struct Softmax;

impl Line for Softmax {
    fn apply<W: Wide>(line: &mut [W]) {
        let greatest = greatest(line);
        let mut sum = W::ZERO;
        for v in line.iter_mut() {
            *v = (*v - greatest).exp();
            sum += *v;
        }
        line.iter_mut().for_each(|v| *v = *v / sum);
    }
}

/// The greatest element; NaN counts as nothing.
pub(crate) fn greatest<W: Wide>(line: &[W]) -> W {
    line.iter().skip(1).fold(line.first().copied().unwrap_or_default(), |a, &v| a.larger(v))
}
