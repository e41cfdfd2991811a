//! [`LinearRegressor`](https://onnx.ai/onnx/operators/onnx_aionnxml_LinearRegressor.html): `X C + intercepts`, of
//! each row of features.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::ml::rows;
use crate::reals::{misfit, written};
use crate::trees::PostTransform;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "LinearRegressor",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// Coefficients [targets, features] and what is added.
pub(crate) struct Linear {
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    pub(crate) targets: usize,
}

impl Linear {
    pub(crate) fn read(cx: &BuildCx<'_>, targets: usize) -> Result<Linear, BuildError> {
        let attributes = &cx.node.attributes;
        let wide = |list: &[f32]| -> Vec<f64> { list.iter().map(|&v| f64::from(v)).collect() };
        let coefficients = wide(attributes.floats("coefficients")?);
        let intercepts = wide(attributes.opt_floats("intercepts")?.unwrap_or(&[]));
        if targets == 0 || !coefficients.len().is_multiple_of(targets) {
            return Err(unsupported(
                "coefficients",
                coefficients.len(),
                &format!("there are {targets} targets"),
            ));
        }
        Ok(Linear { coefficients, intercepts, targets })
    }

    /// The scores of all rows.
    pub(crate) fn scores(&self, cx: &RunCx<'_>) -> Result<(usize, Vec<f64>), KernelError> {
        let (count, width, values) = rows(cx, 0)?;
        if width * self.targets != self.coefficients.len() {
            return Err(misfit(
                "a row has a feature for each coefficient",
                &[&[count, width], &[self.coefficients.len()]],
            ));
        }
        let mut scores = Vec::with_capacity(count * self.targets);
        for row in values.chunks_exact(width.max(1)) {
            for (target, own) in self.coefficients.chunks_exact(width.max(1)).enumerate() {
                let sum: f64 = row.iter().zip(own).map(|(x, c)| x * c).sum();
                scores.push(sum + self.intercepts.get(target).copied().unwrap_or(0.0));
            }
        }
        Ok((count, scores))
    }
}

struct LinearRegressor {
    linear: Linear,
    post: PostTransform,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["coefficients", "intercepts", "post_transform", "targets"])?;
    let attributes = &cx.node.attributes;
    let targets = attributes.int_or("targets", 1)?;
    let targets =
        usize::try_from(targets).map_err(|_| unsupported("targets", targets, "it is not negative"))?;
    let post = PostTransform::named(attributes.opt_string("post_transform")?)?;
    Ok(Box::new(LinearRegressor { linear: Linear::read(cx, targets)?, post }))
}

impl Kernel for LinearRegressor {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (count, mut scores) = self.linear.scores(cx)?;
        scores.chunks_exact_mut(self.linear.targets).for_each(|row| self.post.apply(row));
        let out = written(cx, DType::Float, &[count, self.linear.targets], &scores)?;
        cx.set(0, out);
        Ok(())
    }
}
