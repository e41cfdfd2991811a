//! `Gather` from an encoded constant along axis 0: only the slices that are asked for are decoded.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::Source;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::integers;
use crate::numbers::convert;
use crate::onnx::gather::places;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gather",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| {
        super::only_encoded(cx, 0)
            && cx.node.attributes.int_or("axis", 0).is_ok_and(|axis| axis == 0)
            && Source::of(cx, 0).is_some_and(|source| !source.shape().is_empty())
    },
    build,
};

struct Gather(Source);

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Source::of(cx, 0)
        .map(|source| Box::new(Gather(source)) as Box<dyn Kernel>)
        .ok_or(BuildError::MissingInput { index: 0 })
}

impl Kernel for Gather {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = self.0.shape();
        let places = places(&integers::list(cx, 1)?, from[0])?;
        let mut shape = Shape::from_slice(cx.tensor(1)?.shape());
        shape.extend_from_slice(&from[1..]);
        let inner: usize = from[1..].iter().product();
        let mut row = vec![0.0; inner];
        let mut out = cx.alloc(self.0.dtype(), &shape)?;
        by_type!(self.0.dtype(), [f32, f16, bf16], T => {
            for (to, &at) in out.elements_mut::<T>().chunks_exact_mut(inner.max(1)).zip(&places) {
                self.0.read(at * inner, &mut row)?;
                convert(&row, to);
            }
        }, _ => return Err(KernelError::Other("an encoded value of another type".into())));
        cx.set(0, out.freeze());
        Ok(())
    }
}
