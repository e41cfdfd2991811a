//! Runs the commands of a step with their output in a log file.

use crate::outcome::Faults;
use crate::workspace;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(super) struct Finished {
    /// Whether every command ended with 0.
    pub(super) success: bool,
    /// `target/test-logs/STEP.log`.
    pub(super) log: PathBuf,
    /// What the commands printed, both streams as they came.
    pub(super) output: String,
}

/// Runs the commands one after another, up to the first that fails.
pub(super) fn run_all(step: &str, commands: Vec<Command>) -> Result<Finished, Faults> {
    let folder = workspace::target().join("test-logs");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{step}.log"));
    let mut log = File::create(&path)?;
    let mut success = true;
    for mut command in commands {
        let line = shown(&command);
        writeln!(log, "$ {line}")?;
        command.current_dir(workspace::root()).env("CARGO_TERM_COLOR", "never").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        success = match command.status() {
            Ok(status) => status.success(),
            Err(error) => {
                writeln!(log, "error: `{line}` could not be started: {error}")?;
                false
            }
        };
        if !success {
            break;
        }
    }
    #[expect(clippy::disallowed_methods, reason = "a log is no payload")]
    let output = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
    Ok(Finished { success, log: path, output })
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
