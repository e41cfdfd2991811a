//! Runs the ONNX standard's backend suite, as `tests/conformance/generate.py` lays it out.
//!
//! ```text
//! conformance SUITE [--list FILE] [--page FILE] [--write] [--only TEXT] [--operators]
//! ```
//!
//! `SUITE` holds `VERSION/KIND/CASE`. `--list` names the cases that are known not to pass, each with its reason: a case
//! that fails and is not on it, and one that is on it and passes, are faults. `--page` is the
//! page of operators with their counts, which must be up to date. `--write` writes both anew and keeps the reasons that
//! are there. `--only` runs the cases whose path contains the text and tells why each one fails.
//! `--operators` prints how many of the cases that an operator occurs in pass.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for a terminal")]

mod case;
mod compare;
mod list;
mod page;
mod report;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::{Engine, EngineOptions};

use case::{Case, Verdict};
use list::List;

const USAGE: &str =
    "usage: conformance SUITE [--list FILE] [--page FILE] [--write] [--only TEXT] [--operators]";

#[derive(Default)]
struct Arguments {
    suite: PathBuf,
    list: Option<PathBuf>,
    page: Option<PathBuf>,
    write: bool,
    only: Option<String>,
    operators: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| USAGE.to_string());
        match word.as_str() {
            "--list" => parsed.list = Some(value()?.into()),
            "--page" => parsed.page = Some(value()?.into()),
            "--only" => parsed.only = Some(value()?),
            "--write" => parsed.write = true,
            "--operators" => parsed.operators = true,
            _ if word.starts_with('-') || !parsed.suite.as_os_str().is_empty() => return Err(USAGE.into()),
            _ => parsed.suite = word.into(),
        }
    }
    if parsed.suite.as_os_str().is_empty() { Err(USAGE.into()) } else { Ok(parsed) }
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    // A panic is told with its case, by the verdict.
    std::panic::set_hook(Box::new(|_| {}));
    let engine = Engine::new(EngineOptions::default()).map_err(|error| error.to_string())?;
    let cases = case::all(&arguments.suite)?;
    let wanted = |case: &&Case| arguments.only.as_ref().is_none_or(|text| case.path.contains(text.as_str()));
    let verdicts: Vec<(&Case, Verdict)> =
        cases.iter().filter(wanted).map(|case| (case, case.run(&engine))).collect();
    if verdicts.is_empty() {
        return Err(format!("no case in {}", arguments.suite.display()));
    }
    if arguments.operators {
        report::by_operator(&verdicts);
    }
    report::by_kind(&verdicts);
    if arguments.only.is_some() {
        for (case, verdict) in &verdicts {
            if let Some(reason) = &verdict.failure {
                println!("{}: {reason}", case.path);
            }
        }
    }
    if arguments.only.is_some() {
        return Ok(true);
    }
    judge(arguments, &verdicts)
}

/// Whether the verdicts are those that the list and the page say.
fn judge(arguments: &Arguments, verdicts: &[(&Case, Verdict)]) -> Result<bool, String> {
    let mut faults = Vec::new();
    if let Some(file) = &arguments.list {
        let list = List::read(file)?;
        match arguments.write {
            true => list.rewritten(verdicts).write(file)?,
            false => faults.extend(list.faults(verdicts)),
        }
    }
    if let Some(file) = &arguments.page {
        match arguments.write {
            true => page::write(file, verdicts)?,
            false => faults.extend(page::fault(file, verdicts)?),
        }
    }
    for fault in &faults {
        println!("error: {fault}");
    }
    Ok(faults.is_empty())
}
