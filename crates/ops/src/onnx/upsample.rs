//! [`Upsample`](https://onnx.ai/onnx/operators/onnx__Upsample.html): what `Resize` was called before version 10.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelSpec};

use super::resize::{Places, Policy, Resize};
use crate::attributes::only;
use crate::interpolation::{Coordinates, Interpolation, Mode, Nearest};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Upsample",
    versions: (7, 10),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 9 { &["mode", "scales"] } else { &["mode"] })?;
    let attributes = &cx.node.attributes;
    let mut how = Interpolation::parse(attributes)?;
    how.coordinates = Coordinates::Asymmetric;
    how.mode = if let Mode::Nearest(_) = how.mode { Mode::Nearest(Nearest::Floor) } else { how.mode };
    let scales = match cx.opset < 9 {
        true => Some(attributes.floats("scales")?.iter().map(|&v| f64::from(v)).collect()),
        false => None,
    };
    let places = Places { region: None, scales: (cx.opset >= 9).then_some(1), sizes: None };
    Ok(Box::new(Resize { how, axes: None, policy: Policy::Stretch, places, scales }))
}
