//! [`TreeEnsembleClassifier`](https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html): for each row
//! of features the class that the trees' leaves favour, and the scores of all classes.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::labels::{ClassLabels, best};
use crate::ml::rows;
use crate::node_lists::{NODES, ensemble, reals};
use crate::reals::{misfit, written};
use crate::trees::{Aggregate, Ensemble, PostTransform};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "TreeEnsembleClassifier",
    versions: (1, 4),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct TreeEnsembleClassifier {
    trees: Ensemble,
    labels: ClassLabels,
    base: Vec<f64>,
    post: PostTransform,
    /// Two classes of which the leaves name one alone: its score decides for both, and whether weights are all positive.
    lone: Option<(usize, bool)>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let own = [
        "base_values",
        "base_values_as_tensor",
        "class_ids",
        "class_nodeids",
        "class_treeids",
        "class_weights",
        "class_weights_as_tensor",
        "classlabels_int64s",
        "classlabels_strings",
        "post_transform",
    ];
    only(cx, &[&NODES[..], &own].concat())?;
    let attributes = &cx.node.attributes;
    let labels = ClassLabels::read(attributes, "classlabels_strings", "classlabels_int64s")?;
    let base = reals(attributes, "base_values")?.unwrap_or_default();
    let ids = attributes.ints("class_ids")?;
    let weights = reals(attributes, "class_weights")?.unwrap_or_default();
    let first = ids.first().copied().and_then(|id| usize::try_from(id).ok()).unwrap_or(0);
    let lone = labels.len() == 2 && ids.iter().all(|&id| id as usize == first);
    if !(base.is_empty() || base.len() == labels.len() || lone && base.len() == 1) {
        return Err(unsupported("base_values", base.len(), "there is one for each class"));
    }
    let trees = ensemble(attributes, "class", labels.len().max(1), Aggregate::Sum)?;
    let post = PostTransform::named(attributes.opt_string("post_transform")?)?;
    let lone = lone.then(|| (first, weights.iter().all(|&w| w >= 0.0)));
    Ok(Box::new(TreeEnsembleClassifier { trees, labels, base, post, lone }))
}

impl TreeEnsembleClassifier {
    /// The class of a row's scores, which become those of the output.
    fn classify(&self, scores: &mut [f64]) -> usize {
        let Some((named, positive)) = self.lone else {
            scores.iter_mut().zip(&self.base).for_each(|(s, b)| *s += b);
            let class = best(scores);
            self.post.apply(scores);
            return class;
        };
        let mut score = scores[named];
        score += match self.base.len() {
            2 => self.base[1],
            1 => self.base[0],
            _ => 0.0,
        };
        // Probabilities are compared with one half, other scores with zero.
        let class = usize::from(if positive { score > 0.5 } else { score > 0.0 });
        match self.post {
            PostTransform::None if positive => (scores[0], scores[1]) = (1.0 - score, score),
            PostTransform::None => (scores[0], scores[1]) = (-score, score),
            PostTransform::Logistic => {
                let p = 1.0 / (1.0 + (-score).exp());
                (scores[0], scores[1]) = (1.0 - p, p);
            }
            other => {
                (scores[0], scores[1]) = (-score, score);
                other.apply(scores);
            }
        }
        class
    }
}

impl Kernel for TreeEnsembleClassifier {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (count, width, values) = rows(cx, 0)?;
        let trees = &self.trees;
        if width < trees.features {
            return Err(misfit(
                "a row has the features that the trees ask for",
                &[&[count, width], &[trees.features]],
            ));
        }
        let (mut scores, mut named) = (vec![0.0; trees.targets], vec![false; trees.targets]);
        let (mut out, mut classes) = (Vec::with_capacity(count * trees.targets), Vec::with_capacity(count));
        for row in values.chunks_exact(width.max(1)) {
            trees.score(row, &mut scores, &mut named);
            classes.push(self.classify(&mut scores));
            out.extend(&scores);
        }
        self.labels.set(cx, &classes)?;
        if cx.wants(1) {
            let out = written(cx, DType::Float, &[count, trees.targets], &out)?;
            cx.set(1, out);
        }
        Ok(())
    }
}
