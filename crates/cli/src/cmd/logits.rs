//! `heirloom logits`: the logits behind each token of a prompt.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::Tensor;
use serde_json::json;

use crate::error::CliError;
use crate::llm::{ModelArgs, parse_tokens};
use crate::out;

/// Print or save the logits behind each token of a prompt
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Token ids, separated by commas
    #[arg(long)]
    tokens: String,
    /// Feed so many tokens at a time [default: all at once]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    chunks: Option<u32>,
    /// Write them as a NumPy file, FLOAT [tokens, vocabulary]; without it, each row is a JSON line
    #[arg(long, value_name = "FILE.npy")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let tokens = parse_tokens(&args.tokens)?;
    let model = args.model.open()?;
    let mut conversation = model.conversation()?;
    let chunk = args.chunks.map_or(tokens.len(), |c| c as usize).max(1);
    let pieces: Vec<Tensor> =
        tokens.chunks(chunk).map(|piece| conversation.feed_all(piece, None)).collect::<Result<_, _>>()?;
    let Some(path) = args.out else {
        for piece in &pieces {
            let vocabulary = piece.shape()[1];
            for row in rows(piece)?.chunks_exact(vocabulary) {
                out::json(&json!({ "logits": row }));
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    write_npy(&path, &pieces)?;
    out::line(&path.display().to_string());
    Ok(ExitCode::SUCCESS)
}

fn rows(piece: &Tensor) -> Result<&[f32], CliError> {
    piece.as_slice().map_err(|e| CliError::Message(format!("the logits: {e}")))
}

/// NumPy's format 1.0: a header padded to 64 bytes, then the elements.
fn write_npy(path: &std::path::Path, pieces: &[Tensor]) -> Result<(), CliError> {
    let io = |source| CliError::Io { path: path.into(), source };
    let (count, width) = (pieces.iter().map(|p| p.shape()[0]).sum::<usize>(), pieces[0].shape()[1]);
    let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, {width}), }}");
    let header = format!("{dict:<width$}\n", width = (dict.len() + 11).next_multiple_of(64) - 11);
    let mut file = BufWriter::new(File::create(path).map_err(io)?);
    file.write_all(b"\x93NUMPY\x01\x00").map_err(io)?;
    file.write_all(&(header.len() as u16).to_le_bytes()).map_err(io)?;
    file.write_all(header.as_bytes()).map_err(io)?;
    for piece in pieces {
        for value in rows(piece)? {
            file.write_all(&value.to_le_bytes()).map_err(io)?;
        }
    }
    file.flush().map_err(io)
}
