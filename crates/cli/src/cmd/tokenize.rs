//! `heirloom tokenize`: a text as token ids.

use std::process::ExitCode;

use crate::error::CliError;
use crate::llm::ModelArgs;
use crate::out;

/// Print a text's token ids as a JSON array
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The text; special tokens in it are recognized
    text: String,
    /// Write it as a user's message by the model's chat template first
    #[arg(long)]
    chat: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let model = args.model.open()?;
    let tokens = if args.chat { model.encode_prompt(&args.text)? } else { model.encode_raw(&args.text)? };
    out::json(&tokens);
    Ok(ExitCode::SUCCESS)
}
