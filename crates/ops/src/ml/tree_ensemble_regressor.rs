//! [`TreeEnsembleRegressor`](https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html): for each row
//! of features and each target, what the trees' leaves give together.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::ml::rows;
use crate::node_lists::{NODES, ensemble, reals};
use crate::reals::{misfit, written};
use crate::trees::{Aggregate, Ensemble, PostTransform};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "TreeEnsembleRegressor",
    versions: (1, 4),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct TreeEnsembleRegressor {
    trees: Ensemble,
    base: Vec<f64>,
    post: PostTransform,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    let own = [
        "aggregate_function",
        "base_values",
        "base_values_as_tensor",
        "n_targets",
        "post_transform",
        "target_ids",
        "target_nodeids",
        "target_treeids",
        "target_weights",
        "target_weights_as_tensor",
    ];
    only(cx, &[&NODES[..], &own].concat())?;
    let attributes = &cx.node.attributes;
    let aggregate = match attributes.opt_string("aggregate_function")? {
        None | Some(b"SUM") => Aggregate::Sum,
        Some(b"AVERAGE") => Aggregate::Average,
        Some(b"MIN") => Aggregate::Min,
        Some(b"MAX") => Aggregate::Max,
        Some(other) => {
            let value = String::from_utf8_lossy(other);
            return Err(unsupported("aggregate_function", value, "there is no such function"));
        }
    };
    let targets = attributes.int("n_targets")?;
    let targets =
        usize::try_from(targets).map_err(|_| unsupported("n_targets", targets, "it is not negative"))?;
    let base = reals(attributes, "base_values")?.unwrap_or_default();
    if !(base.is_empty() || base.len() == targets) {
        return Err(unsupported("base_values", base.len(), "there is one for each target"));
    }
    let trees = ensemble(attributes, "target", targets, aggregate)?;
    let post = PostTransform::named(attributes.opt_string("post_transform")?)?;
    Ok(Box::new(TreeEnsembleRegressor { trees, base, post }))
}

impl Kernel for TreeEnsembleRegressor {
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
        let mut out = Vec::with_capacity(count * trees.targets);
        for row in values.chunks_exact(width.max(1)) {
            trees.score(row, &mut scores, &mut named);
            scores.iter_mut().zip(&self.base).for_each(|(s, b)| *s += b);
            self.post.apply(&mut scores);
            out.extend(&scores);
        }
        let out = written(cx, DType::Float, &[count, trees.targets], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
