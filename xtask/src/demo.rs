//! The main job on a real model: build, fetch, import, generate. Each command is shown, so that it can be typed next.

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MODEL: &str = "smollm2-135m-instruct";
const PROMPT: &str = "What is the capital of France, and what is it known for?";

pub(crate) fn run(args: &[String]) -> Outcome {
    let prompt = if args.is_empty() { PROMPT.to_owned() } else { args.join(" ") };
    show("cargo build --release --package heirloom-cli");
    finish(Command::new("cargo").args(["build", "--release", "--package", "heirloom-cli"]))?;
    let heirloom = workspace::target().join("release").join("heirloom");
    let gguf = last_line(&heirloom, &["fetch", MODEL])?;
    let model = last_line(&heirloom, &["import", &gguf])?;
    let generate = ["generate", &model, "--prompt", &prompt];
    show_call(&heirloom, &generate);
    finish(Command::new(&heirloom).args(generate))
}

fn show(line: &str) {
    eprintln!("\n$ {line}");
}

fn show_call(program: &Path, args: &[&str]) {
    let program = program.strip_prefix(workspace::root()).unwrap_or(program);
    let quoted =
        args.iter().map(|arg| if arg.contains(' ') { format!("{arg:?}") } else { (*arg).to_owned() });
    show(&format!("{} {}", program.display(), quoted.collect::<Vec<_>>().join(" ")));
}

fn finish(command: &mut Command) -> Outcome {
    match command.current_dir(workspace::root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Faults::one(format!("`{}`: {status}", command.get_program().display()))),
        Err(error) => {
            Err(Faults::one(format!("`{}` could not be started: {error}", command.get_program().display())))
        }
    }
}

/// Runs the program with its progress shown and returns the last line of its output: the path of what it made.
fn last_line(heirloom: &PathBuf, args: &[&str]) -> Result<String, Faults> {
    show_call(heirloom, args);
    let mut command = Command::new(heirloom);
    let output = command.args(args).current_dir(workspace::root()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Faults::one(format!("`heirloom {}`: {}", args[0], output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let last = text.lines().next_back().unwrap_or_default();
    Ok(last.to_owned())
}
