//! `ai.heirloom.Decode`: the dense tensor that an encoded constant stands for.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::Source;
use crate::attributes::only;
use crate::numbers::convert;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.heirloom",
    op: "Decode",
    versions: (1, i64::MAX),
    rank: 0,
    accepts: |cx| super::only_encoded(cx, 0),
    build,
};

struct Decode(Source);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Source::of(cx, 0)
        .map(|source| Box::new(Decode(source)) as Box<dyn Kernel>)
        .ok_or(BuildError::MissingInput { index: 0 })
}

/// Elements that are decoded at a time.
const PART: usize = 1 << 16;

impl Kernel for Decode {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut out = cx.alloc(self.0.dtype(), self.0.shape())?;
        match self.0.dtype() {
            heirloom_mem::DType::Float16 => narrow::<half::f16>(cx, &self.0, out.elements_mut())?,
            heirloom_mem::DType::BFloat16 => narrow::<half::bf16>(cx, &self.0, out.elements_mut())?,
            _ => {
                for (part, to) in out.elements_mut::<f32>().chunks_mut(PART).enumerate() {
                    cx.cancel().check()?;
                    self.0.read(part * PART, to)?;
                }
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

fn narrow<T: crate::numbers::Number>(
    cx: &RunCx<'_>,
    source: &Source,
    out: &mut [T],
) -> Result<(), KernelError> {
    let mut wide = vec![0.0; PART.min(out.len())];
    for (part, to) in out.chunks_mut(PART).enumerate() {
        cx.cancel().check()?;
        let wide = &mut wide[..to.len()];
        source.read(part * PART, wide)?;
        convert(wide, to);
    }
    Ok(())
}
