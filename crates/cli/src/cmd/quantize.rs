//! `heirloom quantize`: float initializers in another format, and back.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::{External, PayloadFile, SaveOptions};
use heirloom::quantize::{Converted, NameFilter, QuantizeOptions, Target, TensorReport};
use heirloom::{Engine, EngineOptions, Model, OpenOptions};
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Encode a model's float initializers, or decode them again, and print what each lost
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// The model to write
    output: PathBuf,
    /// `q4_k` or another format of records; `int8`, `int4` and the like for affine codes; `nvfp4`; `k_means:ENTRIES`;
    /// `f32` decodes what is encoded
    #[arg(long)]
    format: String,
    /// For affine codes: a scale for each index of this axis, or blocks along it
    #[arg(long, allow_hyphen_values = true)]
    axis: Option<i64>,
    /// For affine codes: elements along the axis that share a scale
    #[arg(long)]
    block_size: Option<usize>,
    /// Only initializers whose name matches; `*` and `?` stand for any characters; may be given several times
    /// [default: weights of MatMul and Gemm, tables of Gather]
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Not those whose name matches
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Write payloads to one file beside the model
    #[arg(long, conflicts_with = "inline")]
    external: bool,
    /// Write all payloads into the model file
    #[arg(long)]
    inline: bool,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print each initializer as a JSON line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let names = NameFilter { include: args.include, exclude: args.exclude };
    let message = |error: &dyn std::error::Error| CliError::Message(error.to_string());
    let engine = Engine::new(EngineOptions::default()).map_err(|error| message(&error))?;
    let open = args.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
    let decodes = args.format.eq_ignore_ascii_case("f32");
    let target = if decodes {
        None
    } else {
        let target: Target = args.format.parse().map_err(|error| message(&error))?;
        Some(target.along(args.axis, args.block_size).map_err(|error| message(&error))?)
    };
    let model = Model::open(&args.model, &open)?;
    let converted = match target {
        None => engine.dequantize(&model, &names)?,
        Some(target) => engine.quantize(&model, &QuantizeOptions { target, names })?,
    };
    if converted.tensors.is_empty() {
        print(&converted, args.json);
        return Err(CliError::Message(format!(
            "no initializer could be converted; `{}` is not written",
            args.output.display()
        )));
    }
    let external = match (args.external, args.inline) {
        (true, _) => External::File(PayloadFile::default()),
        (_, true) => External::Inline,
        _ => External::Keep,
    };
    converted.model.save(&args.output, &SaveOptions::default().external(external))?;
    print(&converted, args.json);
    Ok(ExitCode::SUCCESS)
}

fn print(converted: &Converted, as_json: bool) {
    for tensor in &converted.tensors {
        if as_json {
            out::json(&json!({
                "name": tensor.name, "shape": tensor.shape, "dtype": tensor.dtype.to_string(),
                "bytes_before": tensor.bytes_before, "bytes_after": tensor.bytes_after,
                "rmse": tensor.error.map(|e| e.rmse), "max_error": tensor.error.map(|e| e.max),
                "rms": tensor.error.map(|e| e.rms),
                "decoded_by": tensor.decoded_by.map(|by| format!("{by:?}").to_lowercase()),
            }));
        } else {
            out::line(&line(tensor));
        }
    }
    for skipped in &converted.skipped {
        if as_json {
            out::json(&json!({ "name": skipped.name, "skipped": skipped.reason }));
        } else {
            out::line(&format!("{}: stays as it is: {}", skipped.name, skipped.reason));
        }
    }
}

fn line(tensor: &TensorReport) -> String {
    let TensorReport { name, shape, dtype, bytes_before, bytes_after, .. } = tensor;
    let mut line = format!("{name}: {dtype} {shape:?}, {bytes_before} -> {bytes_after} bytes");
    if let Some(error) = tensor.error {
        let share = if error.rms > 0.0 { 100.0 * error.rmse / error.rms } else { 0.0 };
        line += &format!(", RMSE {:.3e} ({share:.2} % of RMS), max {:.3e}", error.rmse, error.max);
    }
    line
}
