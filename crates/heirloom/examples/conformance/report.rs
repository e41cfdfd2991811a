//! Counts.

use std::collections::BTreeMap;

use crate::case::{Case, Verdict};

/// Passed and all.
pub(crate) type Count = (usize, usize);

fn add(count: &mut Count, verdict: &Verdict) {
    count.0 += usize::from(verdict.failure.is_none());
    count.1 += 1;
}

/// One line for each kind of case.
pub(crate) fn by_kind(verdicts: &[(&Case, Verdict)]) {
    let mut kinds: BTreeMap<&str, Count> = BTreeMap::new();
    for (case, verdict) in verdicts {
        let kind = case.path.rsplit_once('/').map_or("", |(kind, _)| kind);
        add(kinds.entry(kind).or_default(), verdict);
    }
    for (kind, (passed, all)) in &kinds {
        println!("{kind:32} {passed:5} of {all:5}");
    }
    // As test runners say it, so that one reader of logs serves all.
    let passed: usize = kinds.values().map(|count| count.0).sum();
    let all: usize = kinds.values().map(|count| count.1).sum();
    println!("conformance: {passed} of {all} cases pass");
}

/// Of each operator: the cases that it occurs in.
pub(crate) fn counts<'v>(verdicts: &'v [(&Case, Verdict)]) -> BTreeMap<&'v str, Count> {
    let mut operators: BTreeMap<&str, Count> = BTreeMap::new();
    for (_, verdict) in verdicts {
        for operator in &verdict.operators {
            add(operators.entry(operator).or_default(), verdict);
        }
    }
    operators
}

/// One line for each operator.
pub(crate) fn by_operator(verdicts: &[(&Case, Verdict)]) {
    for (operator, (passed, all)) in counts(verdicts) {
        println!("{operator:48} {passed:4} of {all:4}");
    }
    println!();
}
