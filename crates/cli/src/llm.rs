//! What the commands that talk to language models share.

use std::path::PathBuf;

use heirloom::llm::{LanguageModel, LlmOptions, Sampling};
use heirloom::{CancelToken, OpenOptions};

use crate::error::CliError;

/// The model and how it is run.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// The model (`.onnx`)
    pub(crate) model: PathBuf,
    /// Threads [default: all processors that the process may use]
    #[arg(long)]
    threads: Option<usize>,
    /// Tokens that the conversation can hold [default: the model's context length]
    #[arg(long)]
    context: Option<usize>,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn open(&self) -> Result<LanguageModel, CliError> {
        self.open_for(self.context)
    }

    /// With room for `context` tokens.
    pub(crate) fn open_for(&self, context: Option<usize>) -> Result<LanguageModel, CliError> {
        let open =
            self.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
        let options = LlmOptions { threads: self.threads, context, open };
        Ok(LanguageModel::open(&self.model, &options)?)
    }
}

/// How tokens are chosen.
#[derive(clap::Args)]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token each time
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// The probability that the tokens which may be chosen reach together
    #[arg(long, default_value_t = 0.95)]
    top_p: f32,
    /// How many of the likeliest tokens may be chosen; 0 sets no limit
    #[arg(long, default_value_t = 40)]
    top_k: usize,
    /// Where chance begins: the same seed gives the same text
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl SamplingArgs {
    pub(crate) fn sampling(&self) -> Result<Sampling, CliError> {
        let bad = |what: &str, allowed: &str| CliError::Message(format!("`{what}` must be {allowed}"));
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(bad("--temperature", "0 or a positive number"));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(bad("--top-p", "more than 0 and at most 1"));
        }
        Ok(Sampling { temperature: self.temperature, top_k: self.top_k, top_p: self.top_p, seed: self.seed })
    }
}

/// Cancels `token` on the first Ctrl-C; ends the program on a second one while it is still cancelled.
pub(crate) fn cancel_on_interrupt(token: &CancelToken) -> Result<(), CliError> {
    let token = token.clone();
    ctrlc::set_handler(move || {
        if token.is_cancelled() {
            std::process::exit(130);
        }
        token.cancel();
    })
    .map_err(|error| CliError::Message(format!("Ctrl-C cannot be caught: {error}")))
}

/// Token ids separated by commas.
pub(crate) fn parse_tokens(text: &str) -> Result<Vec<u32>, CliError> {
    let parse = |word: &str| {
        let word = word.trim();
        word.parse().map_err(|_| CliError::Message(format!("`{word}` in `--tokens` is no token id")))
    };
    text.split(',').map(parse).collect()
}
