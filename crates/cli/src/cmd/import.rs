//! `heirloom import`: a model file of another format as ONNX.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::{External, PayloadFile};
use heirloom::import::gguf::{CacheType, ImportOptions, import};
use heirloom::llm::import_contained;
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Write a GGUF model as ONNX beside it; its weights stay in the GGUF
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.gguf`)
    model: PathBuf,
    /// The file to write [default: the model's name with `.onnx`, beside it]
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// The element type of the caches
    #[arg(long, default_value = "f16", value_parser = ["f16", "bf16", "f32"])]
    cache: String,
    /// Put the weights into the model file, and tokenizer and chat template with them: the GGUF is not needed afterwards
    #[arg(long, conflicts_with = "external")]
    inline: bool,
    /// Put the weights into one `.data` file beside the model; otherwise as `--inline`
    #[arg(long)]
    external: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let cache = match &*args.cache {
        "bf16" => CacheType::BFloat16,
        "f32" => CacheType::Float,
        _ => CacheType::Float16,
    };
    let path = if args.inline || args.external {
        let output = args.output.unwrap_or_else(|| args.model.with_extension("onnx"));
        let place = if args.inline { External::Inline } else { External::File(PayloadFile::default()) };
        import_contained(&args.model, &output, cache, place)?;
        output
    } else {
        import(&args.model, &ImportOptions { cache, output: args.output })?
    };
    if args.json {
        out::json(&json!({ "path": path }));
    } else {
        out::line(&path.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}
