//! The `heirloom` command.
#![forbid(unsafe_code)]

mod cmd;
mod error;
mod fetch;
mod llm;
mod memory;
mod out;
mod report;
mod test_data;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: heirloom_mem::CountingAlloc = heirloom_mem::CountingAlloc;

fn main() -> ExitCode {
    match cmd::run() {
        Ok(code) => code,
        Err(error) => {
            out::error(&error);
            ExitCode::FAILURE
        }
    }
}
