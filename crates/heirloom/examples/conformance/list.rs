//! The list of cases that are known not to pass.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::case::{Case, Verdict};

/// Reasons by `VERSION/KIND/CASE`, and the comment in front of them.
pub(crate) struct List {
    head: String,
    reasons: BTreeMap<String, String>,
}

/// A reason takes one line and not all of a long message.
fn brief(reason: &str) -> String {
    let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(160) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

impl List {
    pub(crate) fn read(file: &Path) -> Result<List, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (mut head, mut reasons) = (String::new(), BTreeMap::new());
        for line in text.lines() {
            if line.starts_with('#') || line.trim().is_empty() {
                head.push_str(line);
                head.push('\n');
                continue;
            }
            let entry = line.split_once(": ").ok_or_else(|| format!("`{line}` gives no reason"))?;
            if reasons.insert(entry.0.to_string(), entry.1.to_string()).is_some() {
                return Err(format!("`{}` is listed twice", entry.0));
            }
        }
        Ok(List { head, reasons })
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), String> {
        let mut text = self.head.clone();
        for (path, reason) in &self.reasons {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{path}: {reason}");
        }
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The list that fits the verdicts.
    pub(crate) fn rewritten(&self, verdicts: &[(&Case, Verdict)]) -> List {
        let failed = verdicts.iter().filter_map(|(case, verdict)| {
            let reason = verdict.failure.as_ref()?;
            let known = self.reasons.get(&case.path).cloned();
            Some((case.path.clone(), known.unwrap_or_else(|| brief(reason))))
        });
        List { head: self.head.clone(), reasons: failed.collect() }
    }

    /// Where the verdicts are not those of the list; cases that did not run are left aside.
    pub(crate) fn faults(&self, verdicts: &[(&Case, Verdict)]) -> Vec<String> {
        let fault = |(case, verdict): &(&Case, Verdict)| {
            let path = &case.path;
            match (&verdict.failure, self.reasons.get(path)) {
                (Some(reason), None) => Some(format!("{path}: {reason}")),
                // Draws may agree by chance.
                (None, Some(reason)) if reason.starts_with("random") => None,
                (None, Some(_)) => Some(format!("{path} passes: take it off the list")),
                _ => None,
            }
        };
        verdicts.iter().filter_map(fault).collect()
    }
}
