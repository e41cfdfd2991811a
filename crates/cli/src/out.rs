//! Where the commands print: results to standard output, progress and errors to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{IsTerminal, Write};

use serde::Serialize;

/// One line of a command's result.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone away (`| head`) is no fault of ours.
    let _ = writeln!(out, "{text}");
}

/// A piece of a command's result, shown at once.
pub(crate) fn piece(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// One JSON value on a line of its own, shown at once.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => {
            line(&text);
            let _ = std::io::stdout().flush();
        }
        Err(error) => eprintln!("heirloom: a result could not be written as JSON: {error}"),
    }
}

/// A remark beside the result.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// An error with its causes, each once.
pub(crate) fn error(error: &dyn std::error::Error) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    eprintln!("heirloom: {text}");
}

/// Whether progress can be drawn.
pub(crate) fn progress_wanted() -> bool {
    std::io::stderr().is_terminal()
}
