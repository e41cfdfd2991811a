//! Decision trees: what the tree operators have in common.

use std::collections::HashSet;

use heirloom_runtime::BuildError;

use crate::attributes::unsupported;

/// The question that a node asks of a feature.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    /// One of these values, by their bits.
    Member(HashSet<u64>),
}

impl Rule {
    /// By the names of the older operators.
    pub(crate) fn named(name: &[u8]) -> Option<Rule> {
        Some(match name {
            b"BRANCH_LEQ" => Rule::LessEqual,
            b"BRANCH_LT" => Rule::Less,
            b"BRANCH_GTE" => Rule::GreaterEqual,
            b"BRANCH_GT" => Rule::Greater,
            b"BRANCH_EQ" => Rule::Equal,
            b"BRANCH_NEQ" => Rule::NotEqual,
            _ => return None,
        })
    }

    fn holds(&self, x: f64, split: f64) -> bool {
        match self {
            Rule::LessEqual => x <= split,
            Rule::Less => x < split,
            Rule::GreaterEqual => x >= split,
            Rule::Greater => x > split,
            Rule::Equal => x == split,
            Rule::NotEqual => x != split,
            Rule::Member(values) => values.contains(&bits(x)),
        }
    }
}

/// What a value is compared by: both zeros are equal.
pub(crate) fn bits(x: f64) -> u64 {
    (x + 0.0).to_bits()
}

/// A branch or a leaf.
#[derive(Clone, Debug)]
pub(crate) enum TreeNode {
    Branch {
        rule: Rule,
        feature: usize,
        split: f64,
        missing_is_true: bool,
        yes: usize,
        no: usize,
    },
    /// Adds weights to targets.
    Leaf(Vec<(usize, f64)>),
}

/// How the trees' weights of a target become one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aggregate {
    Average,
    Sum,
    Min,
    Max,
}

/// Trees whose leaves weigh targets.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    pub(crate) nodes: Vec<TreeNode>,
    pub(crate) roots: Vec<usize>,
    pub(crate) targets: usize,
    pub(crate) aggregate: Aggregate,
    /// The features that the nodes ask for, at least.
    pub(crate) features: usize,
}

impl Ensemble {
    /// Checks that all links lead somewhere and no tree goes in circles.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn new(
        nodes: Vec<TreeNode>,
        roots: Vec<usize>,
        targets: usize,
        aggregate: Aggregate,
    ) -> Result<Ensemble, BuildError> {
        let mut features = 0;
        // 0: not seen, 1: on the way to it, 2: done.
        let mut seen = vec![0u8; nodes.len()];
        let mut stack: Vec<(usize, bool)> = roots.iter().map(|&root| (root, false)).collect();
        while let Some((at, leaving)) = stack.pop() {
            let Some(node) = nodes.get(at) else {
                return Err(unsupported("tree nodes", at, "a link leads to no node"));
            };
            match node {
                _ if leaving => seen[at] = 2,
                _ if seen[at] == 2 => {}
                _ if seen[at] == 1 => return Err(unsupported("tree nodes", at, "a tree goes in circles")),
                TreeNode::Branch { feature, yes, no, .. } => {
                    seen[at] = 1;
                    features = features.max(feature + 1);
                    stack.extend([(at, true), (*yes, false), (*no, false)]);
                }
                TreeNode::Leaf(weights) => {
                    if let Some(w) = weights.iter().find(|w| w.0 >= targets) {
                        return Err(unsupported("target ids", w.0, &format!("there are {targets} targets")));
                    }
                    seen[at] = 2;
                }
            }
        }
        Ok(Ensemble { nodes, roots, targets, aggregate, features })
    }

    /// The targets of one row of features; for each target whether a leaf named it. `values` are overwritten.
    pub(crate) fn score(&self, row: &[f64], values: &mut [f64], named: &mut [bool]) {
        values.fill(0.0);
        named.fill(false);
        for &root in &self.roots {
            let mut at = root;
            let weights = loop {
                match &self.nodes[at] {
                    TreeNode::Branch { rule, feature, split, missing_is_true, yes, no } => {
                        let x = row[*feature];
                        let holds = rule.holds(x, *split) || (*missing_is_true && x.is_nan());
                        at = if holds { *yes } else { *no };
                    }
                    TreeNode::Leaf(weights) => break weights,
                }
            };
            for &(target, weight) in weights {
                let value = &mut values[target];
                *value = match self.aggregate {
                    Aggregate::Min if named[target] => value.min(weight),
                    Aggregate::Max if named[target] => value.max(weight),
                    Aggregate::Min | Aggregate::Max => weight,
                    Aggregate::Sum | Aggregate::Average => *value + weight,
                };
                named[target] = true;
            }
        }
        if self.aggregate == Aggregate::Average {
            values.iter_mut().for_each(|v| *v /= self.roots.len().max(1) as f64);
        }
    }
}

/// What becomes of the scores of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PostTransform {
    None,
    Softmax,
    Logistic,
    SoftmaxZero,
    Probit,
}

impl PostTransform {
    pub(crate) fn named(name: Option<&[u8]>) -> Result<PostTransform, BuildError> {
        Ok(match name {
            None | Some(b"NONE") => PostTransform::None,
            Some(b"SOFTMAX") => PostTransform::Softmax,
            Some(b"LOGISTIC") => PostTransform::Logistic,
            Some(b"SOFTMAX_ZERO") => PostTransform::SoftmaxZero,
            Some(b"PROBIT") => PostTransform::Probit,
            Some(other) => {
                let value = String::from_utf8_lossy(other);
                return Err(unsupported("post_transform", value, "there is no such transform"));
            }
        })
    }

    pub(crate) fn apply(self, scores: &mut [f64]) {
        match self {
            PostTransform::None => {}
            PostTransform::Softmax => softmax(scores, false),
            PostTransform::SoftmaxZero => softmax(scores, true),
            PostTransform::Logistic => scores.iter_mut().for_each(|s| *s = 1.0 / (1.0 + (-*s).exp())),
            PostTransform::Probit => scores.iter_mut().for_each(|s| *s = probit(*s)),
        }
    }
}

/// Softmax; scores that are 0 stay so on request.
fn softmax(scores: &mut [f64], keep_zeros: bool) {
    let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let counts = |s: f64| !keep_zeros || s.abs() > 1e-7;
    let sum: f64 = scores.iter().filter(|s| counts(**s)).map(|s| (s - greatest).exp()).sum();
    for s in scores.iter_mut() {
        *s = if counts(*s) { (*s - greatest).exp() / sum } else { 0.0 };
    }
}

/// The inverse of the normal distribution function, after Winitzki's approximation of the inverse error function, which
/// ONNX Runtime uses too.
fn probit(p: f64) -> f64 {
    let x = 2.0 * p - 1.0;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let v = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * log;
    let root = ((v * v - log / 0.147).sqrt() - v).sqrt();
    std::f64::consts::SQRT_2 * root.copysign(x)
}
