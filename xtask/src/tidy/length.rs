//! A source file is one thing: 300 lines are the aim, 600 the end. Generated files may be longer.

use crate::outcome::Faults;
use crate::workspace::Source;
use std::path::Path;

const WARN: usize = 400;
const FAIL: usize = 600;
const SOURCES: &[&str] = &["py", "rs", "sh"];

pub(super) fn check(source: &Source, faults: &mut Faults) {
    let path = Path::new(&source.path);
    let is_source = path.extension().is_some_and(|extension| SOURCES.iter().any(|known| extension == *known));
    if !is_source || source.is_generated() {
        return;
    }
    if path.file_stem().is_some_and(|stem| stem == "utils" || stem == "util") {
        faults.push(format!("{}: name the file after what it holds", source.path));
    }
    match source.text.lines().count() {
        lines if lines > FAIL => {
            faults.push(format!("{}: {lines} lines, more than {FAIL}: split it", source.path))
        }
        lines if lines > WARN => println!("warning: {}: {lines} lines", source.path),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults_of;
    use super::*;

    #[test]
    fn a_file_over_the_limit_fails_unless_it_is_generated() {
        let long = "x\n".repeat(FAIL + 1);
        assert!(faults_of(check, "a.rs", &long).contains("601 lines"));
        assert_eq!(faults_of(check, "a.rs", &"x\n".repeat(FAIL)), "");
        assert_eq!(faults_of(check, "a.rs", &format!("// @generated\n{long}")), "");
        assert_eq!(faults_of(check, "a.json", &long), "");
    }

    #[test]
    fn a_file_of_leftovers_is_refused_by_its_name() {
        assert!(faults_of(check, "crates/mem/src/utils.rs", "").contains("name the file"));
    }
}
