//! `heirloom optimize`: passes over a model.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::SaveOptions;
use heirloom::passes::pass::{PASSES, Pass, optimize};
use heirloom::{Engine, EngineOptions, Model, OpenOptions};
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Rewrite a model by passes that change no result; inputs, outputs, bindings and annotations stay
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    #[arg(required_unless_present = "list")]
    model: Option<PathBuf>,
    /// The model to write
    #[arg(required_unless_present = "list")]
    output: Option<PathBuf>,
    /// Only this pass; may be given several times [default: all but those that the list marks]
    #[arg(long, value_name = "NAME")]
    pass: Vec<String>,
    /// List the passes
    #[arg(long)]
    list: bool,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print what each pass did as JSON lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let (Some(path), Some(output)) = (&args.model, &args.output) else {
        PASSES.iter().for_each(|pass| out::line(&line(pass)));
        return Ok(ExitCode::SUCCESS);
    };
    let unknown = args.pass.iter().find(|name| !PASSES.iter().any(|pass| pass.name == **name));
    if let Some(name) = unknown {
        let names = PASSES.iter().map(|pass| format!("`{}`", pass.name)).collect::<Vec<_>>().join(", ");
        return Err(CliError::Message(format!("there is no pass `{name}`; there are {names}")));
    }
    let passes: Vec<Pass> = PASSES
        .iter()
        .copied()
        .filter(|pass| match args.pass.is_empty() {
            true => pass.by_default,
            false => args.pass.iter().any(|it| it == pass.name),
        })
        .collect();
    let open = args.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
    let model = Model::open(path, &open)?;
    let engine =
        Engine::new(EngineOptions::default()).map_err(|error| CliError::Message(error.to_string()))?;
    let (model, reports) =
        optimize(model, &passes, Some(&engine)).map_err(|error| CliError::Message(error.to_string()))?;
    model.save(output, &SaveOptions::default())?;
    for report in reports {
        if args.json {
            out::json(&json!({
                "pass": report.name, "nodes_removed": report.nodes, "nodes_made": report.put,
                "constants_removed": report.constants, "constants_made": report.made, "opset": report.opset,
            }));
        } else {
            let mut line = format!(
                "{}: {} nodes became {}, {} constants dropped, {} made",
                report.name, report.nodes, report.put, report.constants, report.made
            );
            if let Some(opset) = report.opset {
                line += &format!(", operator set raised to {opset}");
            }
            out::line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(pass: &Pass) -> String {
    let mut line = format!("{}: {}; then: {}", pass.name, pass.about, pass.ensures);
    if !pass.exact {
        line += "; results are rounded otherwise";
    }
    if !pass.by_default {
        line += "; only when named";
    }
    line
}
