//! Every `unsafe` block and implementation says why it is sound, also inside macros, where clippy does not look;
//! and outside the crates that may hold unsafe code the word does not occur in code.

use crate::outcome::Faults;
use crate::workspace::Source;

const UNSAFE_ALLOWED: &[&str] = &["crates/cpu", "crates/mem", "crates/simd"];

/// Single files that may hold unsafe code: where memory is exchanged with Python.
const UNSAFE_FILES: &[&str] = &["crates/python/src/foreign.rs"];

/// How many lines above an `unsafe` its `// SAFETY:` may begin.
const REACH: usize = 12;

pub(super) fn check(source: &Source, faults: &mut Faults) {
    if !source.path.ends_with(".rs") {
        return;
    }
    let allowed = UNSAFE_FILES.contains(&source.path.as_str())
        || source.crate_folder().is_some_and(|folder| UNSAFE_ALLOWED.contains(&folder));
    let lines: Vec<&str> = source.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let code = code_of(line);
        let Some(what) = unsafe_in(code) else { continue };
        if !allowed {
            faults.at(&source.path, index + 1, "`unsafe` may stand in the crates mem, simd and cpu only");
        } else if what == Unsafe::NeedsReason && !has_reason(&lines, index) {
            faults.at(&source.path, index + 1, "`unsafe` without a `// SAFETY:` comment just above");
        }
    }
}

#[derive(PartialEq)]
enum Unsafe {
    /// A block or an implementation.
    NeedsReason,
    /// `unsafe fn`, `unsafe trait`, `unsafe extern`: the caller's or implementor's duty, in its docs.
    Declares,
}

/// The line without a trailing comment and without the contents of its string literals.
fn code_of(line: &str) -> &str {
    let mut in_string = false;
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '"' if previous != '\\' => in_string = !in_string,
            '/' if previous == '/' && !in_string => return &line[..at - 1],
            _ => {}
        }
        previous = c;
    }
    if in_string || line.contains('"') { line.split('"').next().unwrap_or("") } else { line }
}

fn unsafe_in(code: &str) -> Option<Unsafe> {
    let at = code.find("unsafe")?;
    let before = code[..at].chars().next_back();
    let after = code[at + "unsafe".len()..].trim_start();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if before.is_some_and(|c| is_word(c) || c == '(') || code[at + "unsafe".len()..].starts_with(is_word) {
        return None;
    }
    if after.starts_with('{') || after.starts_with("impl") {
        return Some(Unsafe::NeedsReason);
    }
    Some(Unsafe::Declares)
}

fn has_reason(lines: &[&str], index: usize) -> bool {
    let first = index.saturating_sub(REACH);
    lines[first..=index].iter().any(|line| line.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::super::faults_of;
    use super::*;

    #[test]
    fn an_unsafe_block_needs_its_reason() {
        let bare = "fn f() {\n    unsafe { g() }\n}\n";
        assert!(faults_of(check, "crates/mem/src/a.rs", bare).contains("a.rs:2: `unsafe` without"));
        let reasoned = "fn f() {\n    // SAFETY: g has no duties.\n    unsafe { g() }\n}\n";
        assert_eq!(faults_of(check, "crates/mem/src/a.rs", reasoned), "");
        assert!(faults_of(check, "crates/cpu/src/a.rs", "unsafe impl Send for A {}").contains("without"));
        assert_eq!(faults_of(check, "crates/mem/src/a.rs", "/// # Safety\nunsafe fn f() {}"), "");
    }

    #[test]
    fn other_crates_hold_no_unsafe_code_but_may_speak_of_it() {
        assert!(faults_of(check, "crates/proto/src/a.rs", "unsafe fn f() {}").contains("mem, simd and cpu"));
        let words =
            "#![forbid(unsafe_code)]\n// unsafe { }\nlet text = \"unsafe { }\";\n#[unsafe(no_mangle)]\n";
        let text = faults_of(check, "crates/proto/src/a.rs", words);
        assert!(text.contains("a.rs:4"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
