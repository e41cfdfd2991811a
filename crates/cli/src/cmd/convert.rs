//! `heirloom convert`: a model as standard ONNX.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::{External, PayloadFile, SaveOptions};
use heirloom::passes::lower::{Weights, check_standard, lower};
use heirloom::{Engine, EngineOptions, Model, OpenOptions};
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Write a model as standard ONNX; what that cannot hold is refused by name, or said in standard operators with --lower
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// The model to write
    output: PathBuf,
    /// Refuse what standard ONNX has no words for
    #[arg(long, required_unless_present = "lower")]
    standard: bool,
    /// Say it in standard operators: encoded values as DequantizeLinear, as their decoders or as dense tensors; bindings
    /// as ordinary inputs and outputs, listed in the model's annotation `heirloom.bindings`
    #[arg(long)]
    lower: bool,
    /// Decode all encoded values to dense tensors
    #[arg(long, requires = "lower")]
    dense: bool,
    /// Write payloads to one file beside the model
    #[arg(long, conflicts_with = "inline")]
    external: bool,
    /// Write all payloads into the model file
    #[arg(long)]
    inline: bool,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print what was changed as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let open = args.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
    let model = Model::open(&args.model, &open)?;
    let message = |error: &dyn std::error::Error| CliError::Message(error.to_string());
    let external = match (args.external, args.inline) {
        (true, _) => External::File(PayloadFile::default()),
        (_, true) => External::Inline,
        _ => External::Keep,
    };
    let save = SaveOptions::default().external(external);
    if !args.lower {
        check_standard(&model).map_err(|error| {
            CliError::Message(format!("{error}; --lower says it in standard operators where it can"))
        })?;
        model.save(&args.output, &save)?;
        return Ok(ExitCode::SUCCESS);
    }
    let engine = Engine::new(EngineOptions::default()).map_err(|error| message(&error))?;
    let weights = if args.dense { Weights::Dense } else { Weights::Nodes };
    let lowered = lower(&model, weights, &engine).map_err(|error| message(&error))?;
    lowered.model.save(&args.output, &save)?;
    if args.json {
        let pairs = lowered.pairs.iter().map(|(input, output)| json!({ "input": input, "output": output }));
        let weights = lowered.weights.iter().map(|(name, what)| json!({ "name": name, "became": what }));
        out::json(&json!({ "bindings": pairs.collect::<Vec<_>>(), "weights": weights.collect::<Vec<_>>() }));
        return Ok(ExitCode::SUCCESS);
    }
    for (name, what) in &lowered.weights {
        out::line(&format!("{name}: {what}"));
    }
    for (input, output) in &lowered.pairs {
        out::line(&format!("feed `{output}` to `{input}` of the next call"));
    }
    Ok(ExitCode::SUCCESS)
}
