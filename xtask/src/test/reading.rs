//! How many tests a step ran, and what its output says of those that failed.

use std::fmt;
use std::ops::Add;

/// Who wrote the output of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    /// One check: it passed or it failed.
    Check,
    /// `cargo nextest run` or `cargo test`.
    Rust,
    /// `pytest`.
    Pytest,
}

/// Counts of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Reading {
    /// The counts. A step that failed without a failed test (it did not compile, say) counts as one failure.
    pub(super) fn tally(self, output: &str, success: bool) -> Tally {
        let mut tally = match self {
            Self::Check => Tally { passed: usize::from(success), ..Tally::default() },
            Self::Rust => sum(output.lines().filter(|line| is_rust_summary(line))),
            Self::Pytest => sum(output.lines().rev().find(|line| is_pytest_summary(line)).into_iter()),
        };
        if !success && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }

    /// The part of the output that tells what failed; all of it where no such part is found.
    pub(super) fn failures(self, output: &str) -> String {
        let from_line = |mark: &str| output.lines().position(|line| line.contains(mark));
        let begin = match self {
            Self::Check => output.lines().position(|line| line.starts_with("error")),
            Self::Rust => from_line("    Starting ").or_else(|| from_line("failures:")),
            Self::Pytest => from_line("== FAILURES ==").into_iter().chain(from_line("== ERRORS ==")).min(),
        };
        output.lines().skip(begin.unwrap_or(0)).collect::<Vec<_>>().join("\n")
    }
}

/// Adds up `N passed`, `N failed`, `N skipped` and their synonyms over the lines.
fn sum<'a>(lines: impl Iterator<Item = &'a str>) -> Tally {
    let mut tally = Tally::default();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else { continue };
            match pair[1].trim_end_matches([',', ';', ':']) {
                "passed" => tally.passed += count,
                "failed" | "error" | "errors" => tally.failed += count,
                "skipped" | "ignored" => tally.skipped += count,
                _ => {}
            }
        }
    }
    tally
}

/// nextest's `Summary [   0.1s] …` or `test result: …`.
fn is_rust_summary(line: &str) -> bool {
    line.trim_start().starts_with("Summary [") || line.starts_with("test result:")
}

/// `3 passed, 1 failed in 2.51s`, with or without a frame of `=`.
fn is_pytest_summary(line: &str) -> bool {
    line.contains(" in ")
        && [" passed", " failed", " error", " skipped"].iter().any(|word| line.contains(word))
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: usize, failed: usize, skipped: usize) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn the_counts_of_each_runner_are_read() {
        let nextest = "   Starting 5 tests\n     Summary [   0.1s] 5 tests run: 3 passed (1 slow), 2 failed, 4 skipped\n";
        assert_eq!(Reading::Rust.tally(nextest, false), tally(3, 2, 4));
        let cargo = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
                     test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        assert_eq!(Reading::Rust.tally(cargo, false), tally(5, 1, 1));
        let pytest = "FAILED a.py::b - 4 failed in all\n1 failed, 7 passed, 2 skipped, 1 error in 3.21s\n";
        assert_eq!(Reading::Pytest.tally(pytest, false), tally(7, 2, 2));
        assert_eq!(Reading::Check.tally("anything", true), tally(1, 0, 0));
    }

    #[test]
    fn a_step_that_fails_without_a_failed_test_is_a_failure() {
        for reading in [Reading::Check, Reading::Rust, Reading::Pytest] {
            assert_eq!(reading.tally("error: could not compile", false), tally(0, 1, 0), "{reading:?}");
        }
    }

    #[test]
    fn failures_begin_where_the_runner_reports_them() {
        let pytest = "....\n==== ERRORS ====\nx\n==== FAILURES ====\ny\n";
        assert_eq!(Reading::Pytest.failures(pytest), "==== ERRORS ====\nx\n==== FAILURES ====\ny");
        assert_eq!(Reading::Rust.failures("running\nfailures:\n---- a ----\n"), "failures:\n---- a ----");
        assert_eq!(Reading::Rust.failures("error: could not compile"), "error: could not compile");
        assert_eq!(Reading::Check.failures("78 rows\nerror: a\nerror: b\n"), "error: a\nerror: b");
        assert_eq!(Reading::Check.failures("Diff in a.rs\n"), "Diff in a.rs");
    }
}
