//! [`LinearClassifier`](https://onnx.ai/onnx/operators/onnx_aionnxml_LinearClassifier.html): the class of the
//! greatest of linear scores, and all scores.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::linear_regressor::Linear;
use crate::attributes::only;
use crate::labels::{ClassLabels, best};
use crate::reals::written;
use crate::trees::PostTransform;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "LinearClassifier",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct LinearClassifier {
    linear: Linear,
    labels: ClassLabels,
    post: PostTransform,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "classlabels_ints",
            "classlabels_strings",
            "coefficients",
            "intercepts",
            "multi_class",
            "post_transform",
        ],
    )?;
    let attributes = &cx.node.attributes;
    let labels = ClassLabels::read(attributes, "classlabels_strings", "classlabels_ints")?;
    let intercepts = attributes.opt_floats("intercepts")?.map_or(0, <[f32]>::len);
    let targets = if intercepts > 0 { intercepts } else { labels.len().max(1) };
    let post = PostTransform::named(attributes.opt_string("post_transform")?)?;
    Ok(Box::new(LinearClassifier { linear: Linear::read(cx, targets)?, labels, post }))
}

impl Kernel for LinearClassifier {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (count, scores) = self.linear.scores(cx)?;
        let (mut classes, mut out) = (Vec::with_capacity(count), Vec::new());
        for row in scores.chunks_exact(self.linear.targets) {
            // One score for two classes: its sign decides.
            let mut row: Vec<f64> = match row {
                &[score] if self.labels.len() == 2 => {
                    classes.push(usize::from(score > 0.0));
                    match self.post {
                        PostTransform::Logistic => vec![-score, score],
                        PostTransform::None => vec![1.0 - score, score],
                        _ => vec![-score, score],
                    }
                }
                row => {
                    classes.push(best(row));
                    Vec::from(row)
                }
            };
            self.post.apply(&mut row);
            out.extend(row);
        }
        self.labels.set(cx, &classes)?;
        if cx.wants(1) {
            let width = out.len() / count.max(1);
            let out = written(cx, DType::Float, &[count, width], &out)?;
            cx.set(1, out);
        }
        Ok(())
    }
}
