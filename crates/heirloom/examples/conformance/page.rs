//! The page of operators: what is registered, and what of the suite passes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use heirloom::ops::{KERNELS, NEWEST};

use crate::case::{Case, Verdict};
use crate::report::{Count, counts};

const HEAD: &str = "# Operators

What the portable kernels compute, and how many cases of the ONNX standard's backend suite in which an operator occurs pass:
the newest suite and those that older versions shipped, as `cargo xtask test --only conformance` runs them. The cases that do
not pass are [listed](../tests/conformance/not-passed.txt) with their reasons. The same step writes this page (`--write`)
and refuses an old one.
";

/// Operators that the runtime computes by itself: they hold graphs or values.
const RUNTIME: &[&str] = &["Constant", "If", "Loop", "Scan", "SequenceMap"];

/// Registered versions by domain and operator.
fn registered() -> BTreeMap<(&'static str, &'static str), (i64, i64)> {
    let mut rows: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
    RUNTIME.iter().for_each(|op| _ = rows.insert(("", op), (1, NEWEST)));
    for spec in KERNELS {
        let row = rows.entry((spec.domain, spec.op)).or_insert(spec.versions);
        *row = (row.0.min(spec.versions.0), row.1.max(spec.versions.1));
    }
    rows
}

/// The page for these verdicts.
fn text(verdicts: &[(&Case, Verdict)]) -> String {
    let counts = counts(verdicts);
    let mut text = HEAD.to_string();
    let mut section = None;
    for ((domain, op), (first, last)) in registered() {
        if section != Some(domain) {
            section = Some(domain);
            let name = if domain.is_empty() { "ai.onnx" } else { domain };
            // Writing to a string does not fail.
            let _ = writeln!(text, "\n## {name}\n\n| operator | versions | cases passed |\n|---|---|---|");
        }
        let name = if domain.is_empty() { op.to_string() } else { format!("{domain}.{op}") };
        let (passed, all): Count = counts.get(&*name).copied().unwrap_or_default();
        let versions = match (first, last) {
            (first, i64::MAX) => format!("{first} on"),
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        };
        let cases = if all == 0 { "none occurs".into() } else { format!("{passed} of {all}") };
        let _ = writeln!(text, "| `{op}` | {versions} | {cases} |");
    }
    text
}

pub(crate) fn write(file: &Path, verdicts: &[(&Case, Verdict)]) -> Result<(), String> {
    std::fs::write(file, text(verdicts)).map_err(|error| format!("{}: {error}", file.display()))
}

/// The first line of the page that is not what the verdicts say.
pub(crate) fn fault(file: &Path, verdicts: &[(&Case, Verdict)]) -> Result<Option<String>, String> {
    let page = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let expected = text(verdicts);
    if page == expected {
        return Ok(None);
    }
    let at = page.lines().zip(expected.lines()).position(|(old, new)| old != new);
    let at = at.unwrap_or(page.lines().count().min(expected.lines().count()));
    let line = expected.lines().nth(at).unwrap_or("nothing more");
    Ok(Some(format!("{}:{}: `{line}` is right; --write writes the page", file.display(), at + 1)))
}
