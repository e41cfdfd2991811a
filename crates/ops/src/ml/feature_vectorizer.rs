//! [`FeatureVectorizer`](https://onnx.ai/onnx/operators/onnx_aionnxml_FeatureVectorizer.html): the features of
//! several inputs in one row.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::ml::rows;
use crate::reals::{misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "FeatureVectorizer",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct FeatureVectorizer {
    /// Features of each input: more are cut off, fewer are filled up with zeros.
    widths: Vec<usize>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["inputdimensions"])?;
    let list = cx.node.attributes.opt_ints("inputdimensions")?.unwrap_or(&[]);
    let width =
        |&w: &i64| usize::try_from(w).map_err(|_| unsupported("inputdimensions", w, "it is not negative"));
    Ok(Box::new(FeatureVectorizer { widths: list.iter().map(width).collect::<Result<_, _>>()? }))
}

impl Kernel for FeatureVectorizer {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut parts = Vec::with_capacity(cx.input_count());
        for index in 0..cx.input_count() {
            let (count, width, values) = rows(cx, index)?;
            parts.push((count, width, values, self.widths.get(index).copied().unwrap_or(width)));
        }
        let count = parts.first().map_or(0, |p| p.0);
        if parts.iter().any(|p| p.0 != count) {
            return Err(misfit("all inputs have as many rows", &[&[count]]));
        }
        let total: usize = parts.iter().map(|p| p.3).sum();
        let mut out = Vec::with_capacity(count * total);
        for row in 0..count {
            for (_, width, values, wanted) in &parts {
                let own = &values[row * width..][..*width];
                out.extend(own.iter().copied().chain(std::iter::repeat(0.0)).take(*wanted));
            }
        }
        let out = written(cx, DType::Float, &[count, total], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
