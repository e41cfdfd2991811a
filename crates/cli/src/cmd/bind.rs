//! `heirloom bind`: which outputs of a model are inputs of its next call.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::SaveOptions;
use heirloom::infer::{InferOptions, ShapesContext};
use heirloom::passes::bind::{Found, find};
use heirloom::{Model, OpenOptions};
use serde_json::json;

use crate::error::CliError;
use crate::out;

/// Find a model's state: show which outputs are inputs of the next call, and why, and with --write declare it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// A pair to bind, as the output and the input that it supplies; then nothing is looked for; may be given several
    /// times
    #[arg(long, num_args = 2, value_names = ["OUTPUT", "INPUT"])]
    pair: Vec<String>,
    /// An output whose value an input keeps from the first call that finds the input empty: caches that are made once;
    /// then nothing is looked for; may be given several times
    #[arg(long, num_args = 2, value_names = ["OUTPUT", "INPUT"])]
    keep_first: Vec<String>,
    /// Declare the pairs in the model file
    #[arg(long)]
    write: bool,
    /// Write to this file instead
    #[arg(short, long, requires = "write", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write although something that looks like state stays unbound
    #[arg(long, requires = "write")]
    partly: bool,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let options = OpenOptions::default().allow_missing_files(true);
    let options = args.external_root.iter().fold(options, |open, root| open.external_root(root));
    let model = Model::open(&args.model, &options)?;
    let given: Vec<(&str, &str)> = args.pair.chunks_exact(2).map(|pair| (&*pair[1], &*pair[0])).collect();
    let looks = given.is_empty() && args.keep_first.is_empty();
    let found = if looks {
        find(&model, &ShapesContext::infer(&model, &InferOptions::default()))
    } else {
        Found::default()
    };
    if looks {
        print(&found, args.json);
    }
    let pairs: Vec<(&str, &str)> = match looks {
        true => found.pairs.iter().map(|pair| (&*pair.input, &*pair.output)).collect(),
        false => given,
    };
    if !args.write {
        if !looks {
            edited(&model, &pairs, &args.keep_first)?;
            out::note("the pairs can be bound; --write declares them");
        }
        let nothing = found.pairs.is_empty() && found.declared.is_empty() && looks;
        return Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    if pairs.is_empty() && args.keep_first.is_empty() {
        return Err(CliError::Message("nothing to declare; name pairs with --pair OUTPUT INPUT".into()));
    }
    if !found.refused.is_empty() && !args.partly {
        return Err(CliError::Message(format!(
            "{} more look like state and are not certain: nothing is written; name the pairs with --pair OUTPUT INPUT, or \
             write the certain ones with --partly",
            found.refused.len()
        )));
    }
    let path = args.output.as_ref().unwrap_or(&args.model);
    edited(&model, &pairs, &args.keep_first)?.save(path, &SaveOptions::default())?;
    let count = pairs.len() + args.keep_first.len() / 2;
    out::note(&format!("{count} bindings declared in `{}`", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// The model with these pairs of input and output bound, and outputs kept for inputs.
fn edited(model: &Model, pairs: &[(&str, &str)], keep_first: &[String]) -> Result<Model, CliError> {
    let mut edit = model.edit();
    for (input, output) in pairs {
        edit.bind(input, output);
    }
    for pair in keep_first.chunks_exact(2) {
        edit.keep_first(&pair[1], &pair[0])?;
    }
    Ok(edit.finish()?)
}

fn print(found: &Found, as_json: bool) {
    for (input, output) in &found.declared {
        if as_json {
            out::json(&json!({ "input": input, "output": output, "declared": true }));
        } else {
            out::line(&format!("{input} <- {output}: declared already"));
        }
    }
    for pair in &found.pairs {
        let reasons: Vec<String> = pair.reasons.iter().map(ToString::to_string).collect();
        if as_json {
            out::json(&json!({ "input": pair.input, "output": pair.output, "reasons": reasons }));
        } else {
            out::line(&format!("{} <- {}: {}", pair.input, pair.output, reasons.join("; ")));
        }
    }
    for refused in &found.refused {
        if as_json {
            out::json(&json!({ "refused": refused.value, "reason": refused.to_string() }));
        } else {
            out::line(&format!("not bound: {refused}"));
        }
    }
}
