//! [`SVMClassifier`](https://onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html): each pair of classes has a machine
//! that votes for one of them. Scores are those of the pairs, or probabilities that are fitted to them.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::labels::{ClassLabels, best};
use crate::ml::rows;
use crate::reals::{misfit, written};
use crate::svm_kernel::{Similarity, numbers};
use crate::trees::PostTransform;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "SVMClassifier",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct SvmClassifier {
    similarity: Similarity,
    labels: ClassLabels,
    /// Support vectors of each class, and the first one's place.
    classes: Vec<(usize, usize)>,
    /// [classes - 1, supports]
    coefficients: Vec<f64>,
    supports: usize,
    vectors: Vec<f64>,
    rho: Vec<f64>,
    /// For each pair the slope and the offset of its probability.
    probabilities: Option<Vec<(f64, f64)>>,
    post: PostTransform,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "classlabels_ints",
            "classlabels_strings",
            "coefficients",
            "kernel_params",
            "kernel_type",
            "post_transform",
            "prob_a",
            "prob_b",
            "rho",
            "support_vectors",
            "vectors_per_class",
        ],
    )?;
    let attributes = &cx.node.attributes;
    let labels = ClassLabels::read(attributes, "classlabels_strings", "classlabels_ints")?;
    let mut supports = 0usize;
    let mut classes = Vec::new();
    for &count in attributes.opt_ints("vectors_per_class")?.unwrap_or(&[]) {
        let fits = usize::try_from(count).ok().filter(|&count| count < 1 << 40);
        let count =
            fits.ok_or_else(|| unsupported("vectors_per_class", count, "they are numbers of vectors"))?;
        classes.push((count, supports));
        supports += count;
    }
    if classes.len() < 2 || classes.len() != labels.len() {
        return Err(unsupported(
            "vectors_per_class",
            classes.len(),
            "a number for each of at least two classes is",
        ));
    }
    let pairs = classes.len() * (classes.len() - 1) / 2;
    let (coefficients, vectors, rho) =
        (numbers(cx, "coefficients")?, numbers(cx, "support_vectors")?, numbers(cx, "rho")?);
    if supports.checked_mul(classes.len() - 1) != Some(coefficients.len()) {
        return Err(unsupported(
            "coefficients",
            coefficients.len(),
            "one for each vector and other class is",
        ));
    }
    if supports == 0 || !vectors.len().is_multiple_of(supports) {
        return Err(unsupported("support_vectors", vectors.len(), "whole vectors are"));
    }
    if rho.len() != pairs {
        return Err(unsupported("rho", rho.len(), "one number for each pair of classes is"));
    }
    let (slopes, offsets) = (numbers(cx, "prob_a")?, numbers(cx, "prob_b")?);
    let probabilities = match (slopes.len(), offsets.len()) {
        (0, 0) => None,
        (a, b) if a == pairs && b == pairs => Some(slopes.into_iter().zip(offsets).collect()),
        (a, _) => {
            return Err(unsupported("prob_a", a, "one number for each pair of classes is, as of prob_b"));
        }
    };
    let post = PostTransform::named(attributes.opt_string("post_transform")?)?;
    let similarity = Similarity::read(cx)?;
    Ok(Box::new(SvmClassifier {
        similarity,
        labels,
        classes,
        coefficients,
        supports,
        vectors,
        rho,
        probabilities,
        post,
    }))
}

impl SvmClassifier {
    /// The score of each pair of classes, and the votes for each class.
    fn pairs(&self, row: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let vectors = self.vectors.chunks_exact(row.len().max(1));
        let alike: Vec<f64> = vectors.map(|vector| self.similarity.of(row, vector)).collect();
        let sum = |line: usize, (count, first): (usize, usize)| -> f64 {
            let own = &self.coefficients[line * self.supports + first..][..count];
            own.iter().zip(&alike[first..]).map(|(c, k)| c * k).sum()
        };
        let (mut scores, mut votes) = (Vec::with_capacity(self.rho.len()), vec![0.0; self.classes.len()]);
        for i in 0..self.classes.len() {
            for j in i + 1..self.classes.len() {
                let score = sum(j - 1, self.classes[i]) + sum(i, self.classes[j]) + self.rho[scores.len()];
                votes[if score > 0.0 { i } else { j }] += 1.0;
                scores.push(score);
            }
        }
        (scores, votes)
    }

    fn probabilities(&self, scores: &[f64], fit: &[(f64, f64)]) -> Vec<f64> {
        let k = self.classes.len();
        // How likely i is where it is i or j.
        let mut of_pair = vec![0.5; k * k];
        let mut pairs = scores.iter().zip(fit);
        for i in 0..k {
            for j in i + 1..k {
                let Some((score, (slope, offset))) = pairs.next() else { break };
                let likely = (1.0 / (1.0 + (slope * score + offset).exp())).clamp(1e-7, 1.0 - 1e-7);
                (of_pair[i * k + j], of_pair[j * k + i]) = (likely, 1.0 - likely);
            }
        }
        coupled(k, &of_pair)
    }
}

/// Probabilities of `k` classes from those of their pairs, by the second method of Wu, Lin and Weng (2004): those that
/// minimize the sum of `(r[j][i] p[i] - r[i][j] p[j])²`.
fn coupled(k: usize, r: &[f64]) -> Vec<f64> {
    let mut q = vec![0.0; k * k];
    for t in 0..k {
        for j in (0..k).filter(|&j| j != t) {
            q[t * k + t] += r[j * k + t] * r[j * k + t];
            q[t * k + j] = -r[j * k + t] * r[t * k + j];
        }
    }
    let mut p = vec![1.0 / k as f64; k];
    for _ in 0..100.max(k) {
        let mut qp: Vec<f64> =
            q.chunks_exact(k).map(|row| row.iter().zip(&p).map(|(q, p)| q * p).sum()).collect();
        let mut pqp: f64 = p.iter().zip(&qp).map(|(p, q)| p * q).sum();
        let furthest = qp.iter().fold(0.0, |most: f64, v| most.max((v - pqp).abs()));
        if furthest < 0.005 / k as f64 {
            break;
        }
        for t in 0..k {
            let own = q[t * k + t];
            let step = (pqp - qp[t]) / own;
            p[t] += step;
            let whole = 1.0 + step;
            pqp = (pqp + step * (step * own + 2.0 * qp[t])) / whole / whole;
            for j in 0..k {
                qp[j] = (qp[j] + step * q[t * k + j]) / whole;
                p[j] /= whole;
            }
        }
    }
    p
}

impl Kernel for SvmClassifier {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (count, width, values) = rows(cx, 0)?;
        let expected = self.vectors.len() / self.supports;
        if width != expected {
            return Err(misfit("a row has as many features as the vectors", &[&[count, width], &[expected]]));
        }
        let (mut classes, mut out) = (Vec::with_capacity(count), Vec::new());
        for row in values.chunks_exact(width.max(1)) {
            cx.cancel().check()?;
            let (scores, votes) = self.pairs(row);
            classes.push(best(&votes));
            let mut scores = match (&self.probabilities, &scores[..]) {
                (Some(fit), scores) => self.probabilities(scores, fit),
                // One score for two classes: as ONNX Runtime writes it down for both.
                (None, &[score]) => match self.post {
                    PostTransform::Softmax | PostTransform::SoftmaxZero => {
                        out.extend([1.0 - score, score]);
                        continue;
                    }
                    _ => vec![-score, score],
                },
                (None, scores) => scores.into(),
            };
            self.post.apply(&mut scores);
            out.extend(scores);
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
