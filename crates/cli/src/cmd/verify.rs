//! `heirloom verify`: every fault of a model file.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::OpenOptions;
use heirloom::graph::{Problem, verify_file};
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Print every fault of a model, each with its path in the file
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print each fault as a JSON line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let options =
        args.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
    let faults = verify_file(&args.model, &options)?;
    for fault in &faults {
        if args.json {
            let problem: &Problem = &fault.problem;
            out::json(&json!({ "path": fault.path, "code": problem.code(), "problem": problem.to_string() }));
        } else {
            out::line(&fault.to_string());
        }
    }
    let file = args.model.display();
    match faults.len() {
        0 => {
            if !args.json {
                out::line(&format!("{file}: no faults"));
            }
            Ok(ExitCode::SUCCESS)
        }
        count => {
            out::note(&format!("heirloom: `{file}` has {count} fault{}", if count == 1 { "" } else { "s" }));
            Ok(ExitCode::FAILURE)
        }
    }
}
