//! [`Hardmax`](https://onnx.ai/onnx/operators/onnx__Hardmax.html): 1 at the first greatest element along an axis, 0 elsewhere;
//! before version 13 over all axes from `axis` on.

use heirloom_runtime::KernelSpec;

use crate::axis::{Line, lines};
use crate::real::num::Wide;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Hardmax",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 1, crate::attributes::is_real),
    build: lines::<Hardmax>,
};

struct Hardmax;

impl Line for Hardmax {
    fn apply<W: Wide>(line: &mut [W]) {
        let mut best = 0;
        for at in 1..line.len() {
            if line[at] > line[best] {
                best = at;
            }
        }
        line.iter_mut().enumerate().for_each(|(at, v)| *v = if at == best { W::ONE } else { W::ZERO });
    }
}
