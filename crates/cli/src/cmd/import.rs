//! `heirloom import`: a model file of another format as ONNX.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::import::gguf::{CacheType, ImportOptions, import};
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
    let options = ImportOptions { cache, output: args.output };
    let path = import(&args.model, &options)?;
    if args.json {
        out::json(&json!({ "path": path }));
    } else {
        out::line(&path.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}
