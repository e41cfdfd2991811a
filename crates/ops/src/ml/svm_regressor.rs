//! [`SVMRegressor`](https://onnx.ai/onnx/operators/onnx_aionnxml_SVMRegressor.html): a sum of similarities to support
//! vectors, of each row of features.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::ml::rows;
use crate::reals::{misfit, written};
use crate::svm_kernel::{Similarity, numbers};
use crate::trees::PostTransform;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "SVMRegressor",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SvmRegressor {
    similarity: Similarity,
    coefficients: Vec<f64>,
    /// None: the coefficients are those of the features.
    supports: usize,
    vectors: Vec<f64>,
    rho: f64,
    one_class: bool,
    post: PostTransform,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "coefficients",
            "kernel_params",
            "kernel_type",
            "n_supports",
            "one_class",
            "post_transform",
            "rho",
            "support_vectors",
        ],
    )?;
    let attributes = &cx.node.attributes;
    let supports = attributes.int_or("n_supports", 0)?;
    let supports = usize::try_from(supports)
        .map_err(|_| unsupported("n_supports", supports, "it is a number of vectors"))?;
    let (coefficients, vectors, rho) =
        (numbers(cx, "coefficients")?, numbers(cx, "support_vectors")?, numbers(cx, "rho")?);
    let fits = supports == 0 || coefficients.len() == supports && vectors.len().is_multiple_of(supports);
    if !fits {
        return Err(unsupported("n_supports", supports, "there are a coefficient and a vector for each"));
    }
    let &[rho] = &rho[..] else { return Err(unsupported("rho", rho.len(), "one number is")) };
    Ok(Box::new(SvmRegressor {
        similarity: Similarity::read(cx)?,
        coefficients,
        supports,
        vectors,
        rho,
        one_class: attributes.int_or("one_class", 0)? != 0,
        post: PostTransform::named(attributes.opt_string("post_transform")?)?,
    }))
}

impl Kernel for SvmRegressor {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (count, width, values) = rows(cx, 0)?;
        let expected = self.vectors.len().checked_div(self.supports).unwrap_or(self.coefficients.len());
        if width != expected {
            return Err(misfit("a row has as many features as the vectors", &[&[count, width], &[expected]]));
        }
        let mut out = Vec::with_capacity(count);
        for row in values.chunks_exact(width.max(1)) {
            cx.cancel().check()?;
            let sum: f64 = match self.supports {
                0 => self.similarity.of(row, &self.coefficients),
                _ => {
                    let vectors = self.vectors.chunks_exact(width.max(1));
                    let pairs = vectors.zip(&self.coefficients);
                    pairs.map(|(vector, c)| c * self.similarity.of(row, vector)).sum()
                }
            };
            let score = sum + self.rho;
            let mut score = [if !self.one_class {
                score
            } else if score > 0.0 {
                1.0
            } else {
                -1.0
            }];
            self.post.apply(&mut score);
            out.extend(score);
        }
        let out = written(cx, DType::Float, &[count, 1], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
