//! The `proves:` lines of a source file and the test below each.

use super::table::is_id;
use crate::outcome::Faults;
use crate::workspace::Source;

pub(super) struct Proof {
    pub(super) id: String,
    /// `path: name of the test`.
    pub(super) test: String,
}

/// The proofs in a file. A line with a malformed ID, or one that no test follows, is a fault.
pub(super) fn scan(source: &Source, faults: &mut Faults) -> Vec<Proof> {
    let python = source.path.ends_with(".py");
    let marker = if python { "# proves:" } else { "// proves:" };
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let mut proofs = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(ids) = line.strip_prefix(marker) else { continue };
        let Some(name) = test_below(&lines, index, python, &source.path) else {
            faults.at(&source.path, index + 1, "no test stands below this `proves:` line");
            continue;
        };
        for id in ids.split(',').map(str::trim) {
            if is_id(id) {
                proofs.push(Proof { id: id.to_owned(), test: format!("{}: {name}", source.path) });
            } else {
                faults.at(&source.path, index + 1, format_args!("`{id}` is no ID of a requirement"));
            }
        }
    }
    proofs
}

/// The name of the test that the line at `index` stands above, with only attributes and comments between.
fn test_below<'a>(lines: &[&'a str], index: usize, python: bool, path: &str) -> Option<&'a str> {
    let is_prelude = |line: &str| {
        if python {
            line.starts_with('#') || line.starts_with('@')
        } else {
            line.starts_with("//") || line.starts_with('#')
        }
    };
    let above = lines[..index].iter().rev().take_while(|line| is_prelude(line));
    let below = lines[index + 1..].iter().take_while(|line| is_prelude(line));
    let is_test = above.chain(below.clone()).any(|line| line.starts_with("#[test]"));
    let head = lines.get(index + 1 + below.count())?;
    let (keyword, rest) = if python { head.split_once("def ")? } else { head.split_once("fn ")? };
    let name = rest.split(['(', '<']).next()?;
    let enough = if python {
        name.starts_with("test_") && keyword.is_empty()
    } else {
        is_test || (name == "run" && path.starts_with("xtask/"))
    };
    enough.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(path: &str, text: &str) -> (Vec<String>, String) {
        let mut faults = Faults::default();
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let proofs = scan(&source, &mut faults);
        (proofs.into_iter().map(|proof| format!("{} {}", proof.id, proof.test)).collect(), faults.to_string())
    }

    #[test]
    fn a_test_proves_each_id_of_its_line() {
        let line = concat!("// pro", "ves: E1, L2\n");
        let both = ["E1 a.rs: holds", "L2 a.rs: holds"];
        assert_eq!(scanned("a.rs", &format!("{line}#[test]\nfn holds() {{}}\n")).0, both);
        assert_eq!(scanned("a.rs", &format!("#[test]\n{line}    fn holds() {{}}\n")).0, both);
        let line = concat!("# pro", "ves: GB1\n");
        let (proofs, faults) = scanned("a.py", &format!("{line}@mark\ndef test_it(x):\n    pass\n"));
        assert_eq!((proofs, faults), (vec!["GB1 a.py: test_it".to_owned()], String::new()));
    }

    #[test]
    fn a_line_without_a_test_and_a_malformed_id_are_faults() {
        let line = concat!("// pro", "ves: E1\n");
        for below in ["fn holds() {}", "", "struct S;\n#[test]\nfn holds() {}"] {
            let (proofs, faults) = scanned("crates/a/src/a.rs", &format!("{line}{below}"));
            assert!(proofs.is_empty() && faults.contains("no test stands below"), "{below}");
        }
        let line = concat!("// pro", "ves: E1 L2\n");
        assert!(scanned("a.rs", &format!("{line}#[test]\nfn holds() {{}}")).1.contains("`E1 L2` is no ID"));
    }

    #[test]
    fn the_run_of_a_check_of_this_tool_counts() {
        let line = concat!("// pro", "ves: N1\n");
        let text = format!("{line}pub(crate) fn run(args: &[String]) -> Outcome {{}}");
        assert_eq!(scanned("xtask/src/size.rs", &text).0, ["N1 xtask/src/size.rs: run"]);
        assert!(scanned("crates/a/src/size.rs", &text).0.is_empty());
    }
}
