//! The rows below a comment `// tidy: sorted` (`# tidy: sorted` in Python) stand in ascending order, up to a blank
//! line or one that closes a bracket.

use crate::outcome::Faults;
use crate::workspace::Source;

pub(super) fn check(source: &Source, faults: &mut Faults) {
    let mut rows: Option<&str> = None;
    for (index, line) in source.text.lines().enumerate() {
        let row = line.trim();
        if matches!(row.trim_start_matches(['/', '#']), " tidy: sorted") && row.starts_with(['/', '#']) {
            rows = Some("");
        } else if let Some(previous) = rows {
            if row.is_empty() || row.starts_with(['}', ']', ')']) {
                rows = None;
            } else if row.starts_with("//") || row.starts_with("# ") {
                continue;
            } else if row < previous {
                faults.at(
                    &source.path,
                    index + 1,
                    format_args!("`{row}` stands below `{previous}`: sort the table"),
                );
                rows = None;
            } else {
                rows = Some(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults_of;
    use super::*;

    #[test]
    fn rows_of_a_marked_table_ascend() {
        assert_eq!(faults_of(check, "a.rs", "// tidy: sorted\na,\n// a note\nb,\n}\na,\n"), "");
        let text = faults_of(check, "a.rs", "t! {\n    // tidy: sorted\n    b,\n    a,\n}\n");
        assert!(text.contains("a.rs:4: `a,` stands below `b,`"), "{text}");
        assert_eq!(faults_of(check, "a.rs", "b,\na,\n"), "");
    }
}
