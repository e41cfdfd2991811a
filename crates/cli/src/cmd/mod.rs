//! The commands: one file and one line in the table each.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::CliError;

/// Run ONNX models with quantized values and persistent state.
#[derive(Parser)]
#[command(name = "heirloom", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands. A row makes the module, the variant (with the help of its `Args`) and the call.
macro_rules! commands {
    ($($module:ident: $variant:ident),* $(,)?) => {
        $(mod $module;)*

        #[derive(Subcommand)]
        enum Command { $($variant($module::Args)),* }

        /// Parses the command line and runs the command.
        pub(crate) fn run() -> Result<ExitCode, CliError> {
            match Cli::parse().command { $(Command::$variant(args) => $module::run(args)),* }
        }
    };
}

commands! {
    bench: Bench,
    bind: Bind,
    chat: Chat,
    convert: Convert,
    fetch: Fetch,
    generate: Generate,
    import: Import,
    infer: Infer,
    inspect: Inspect,
    logits: Logits,
    optimize: Optimize,
    quantize: Quantize,
    run: Run,
    tokenize: Tokenize,
    verify: Verify,
}
