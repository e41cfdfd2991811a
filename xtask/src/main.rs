//! Checks and generators for developers: `cargo xtask COMMAND`.
//!
//! A command is one file with `pub(crate) fn run(args: &[String]) -> Outcome` and one line in the table below.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these are tools for a terminal")]

mod outcome;
mod workspace;

use outcome::{Faults, Outcome};
use std::process::ExitCode;

struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Outcome,
}

macro_rules! commands {
    ($($module:ident $name:literal: $about:literal,)+) => {
        $(mod $module;)+
        const COMMANDS: &[Command] = &[$(Command { name: $name, about: $about, run: $module::run }),+];
    };
}

commands! {
    // tidy: sorted
    docs "docs": "links and commands in the documentation",
    fmt "fmt": "format every tracked Rust file, those declared by macros too (--check: only tell)",
    layers "layers": "each crate depends on lower layers only; unsafe code in three crates only",
    proto_gen "proto": "the message code of heirloom-proto, from onnx.proto (--check: only compare)",
    requirements "requirements": "each requirement with the tests that prove it; a due one needs a test",
    size "size": "what heirloom-proto costs as a shared library, against the limits of N1",
    test "test": "all tests and checks (--only, --skip, --list)",
    tidy "tidy": "file lengths, machine paths, host names, words left over, sorted tables, SAFETY comments",
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        print_help();
        return ExitCode::SUCCESS;
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print_help();
        return ExitCode::SUCCESS;
    }
    let outcome = match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => {
            print_help();
            Err(Faults::one(format!("there is no command `{name}`")))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            eprint!("{faults}");
            ExitCode::FAILURE
        }
    }
}

fn print_help() {
    println!("cargo xtask COMMAND\n");
    for command in COMMANDS {
        println!("  {:14}{}", command.name, command.about);
    }
}
