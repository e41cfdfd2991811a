//! `cargo fmt` follows `mod` items only; tables declare their modules by macro, so every tracked file is named.

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use std::process::Command;

pub(crate) fn run(args: &[String]) -> Outcome {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(Faults::one("usage: cargo xtask fmt [--check]")),
    };
    let files: Vec<String> = workspace::tracked()?.into_iter().filter(|path| path.ends_with(".rs")).collect();
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024"]).args(check.then_some("--check")).args(&files);
    let status = command.current_dir(workspace::root()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(Faults::one("files are not formatted (or do not parse): run `cargo xtask fmt`"))
    }
}
