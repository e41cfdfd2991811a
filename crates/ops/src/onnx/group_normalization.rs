//! [`GroupNormalization`](https://onnx.ai/onnx/operators/onnx__GroupNormalization.html): the channels of each group have
//! their common mean taken off and are divided by their deviation, then scaled and shifted, by group before version
//! 21, by channel from then on.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::instance_normalization::normalize;
use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "GroupNormalization",
    versions: (18, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct GroupNormalization {
    epsilon: f64,
    groups: usize,
    by_group: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["epsilon", "num_groups", "stash_type"])?;
    let attributes = &cx.node.attributes;
    let groups = attributes.int("num_groups")?;
    let groups = usize::try_from(groups).ok().filter(|&g| g > 0);
    // All is computed in DOUBLE and rounded once, whatever `stash_type` says.
    attributes.int_or("stash_type", 1)?;
    Ok(Box::new(GroupNormalization {
        epsilon: f64::from(attributes.float_or("epsilon", 1e-5)?),
        groups: groups.ok_or_else(|| unsupported("num_groups", "0", "there is at least one group"))?,
        by_group: cx.opset < 21,
    }))
}

impl Kernel for GroupNormalization {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => {
            let x = cx.dense(0)?;
            match x.shape() {
                &[_, channels, ref spatial @ ..] if channels.is_multiple_of(self.groups) => {
                    let (plane, size) = (spatial.iter().product(), channels / self.groups);
                    normalize::<T>(cx, channels, self.groups, plane, self.epsilon, |channel| {
                        if self.by_group { channel / size.max(1) } else { channel }
                    })
                }
                other => Err(KernelError::Shape {
                    what: "the input is [batch, channels, …], the channels a multiple of the groups",
                    shapes: vec![Shape::from_slice(other)],
                }),
            }
        }, _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}
