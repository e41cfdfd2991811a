//! What can go wrong between a prompt and its answer.

use std::path::PathBuf;

use heirloom_runtime::{RunError, SessionError, StateError};
use heirloom_text::TextError;

/// An error of a language model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The processor lacks the level that was asked for.
    #[error(transparent)]
    Isa(#[from] heirloom_simd::IsaError),
    /// The file is no valid model, or a file that it needs is missing.
    #[error(transparent)]
    Model(#[from] heirloom_graph::Error),
    /// The model cannot be run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The file is a model, but none that takes token ids and gives logits.
    #[error("`{}` is no language model: it has no {missing}", path.display())]
    NotALanguageModel {
        /// The file.
        path: PathBuf,
        /// What it lacks.
        missing: String,
    },
    /// A GGUF file where a model is wanted.
    #[error("`{}` is a GGUF file: make a model of it with `heirloom import {}`", path.display(), path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
    },
    /// The model names no tokenizer.
    #[error(
        "`{}` carries no text: neither `heirloom.text` nor `heirloom.tokenizer` in its metadata; import it again, or \
         feed token ids",
        path.display()
    )]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// The model's tokenizer file cannot be read.
    #[error("the tokenizer of `{}`: {source}", path.display())]
    TextFile {
        /// The model.
        path: PathBuf,
        /// Why.
        source: heirloom_import::ImportError,
    },
    /// A GGUF file cannot be imported.
    #[error(transparent)]
    Import(#[from] heirloom_import::ImportError),
    /// A path that ends in no file name that a model can hold.
    #[error("`{}` does not end in a file name of UTF-8: rename the file", path.display())]
    FileName {
        /// The path.
        path: PathBuf,
    },
    /// The location of the tokenizer leaves the model's folder.
    #[error("the tokenizer of `{}` lies at `{location}`, outside the model's folder: refused", path.display())]
    TextLocation {
        /// The model.
        path: PathBuf,
        /// The location in its metadata.
        location: String,
    },
    /// A tokenizer or a chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The model has no chat template.
    #[error("the model has no chat template: use `generate` with a prompt of its own form")]
    NoTemplate,
    /// The prompt does not fit the context.
    #[error(
        "the prompt has {tokens} tokens and {used} are in the state, but the context holds {context}: shorten the \
         prompt or raise the context (`--context`)"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens in the state.
        used: usize,
        /// Tokens that the context holds.
        context: usize,
    },
    /// A prompt without a token.
    #[error("the prompt is empty: there is nothing to continue")]
    EmptyPrompt,
    /// A state could not be made or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A call failed; the state is as it was before.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The logits are no FLOAT tensor, or hold no number.
    #[error("the model's logits cannot be used: {0}")]
    Logits(String),
}
