//! A language model that is ready to be talked to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heirloom_graph::{Model, OpenOptions};
use heirloom_runtime::{CachePolicy, Session};
use heirloom_text::{ChatRequest, EncodeOptions, Message, RenderChat, Tokenizer, encode_rendered};

use super::text::Text;
use super::{Conversation, LlmError};
use crate::{Engine, EngineOptions, WeightBytes, weight_bytes};

/// Choices for opening a language model.
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// Threads; `None` takes all processors that the process may use.
    pub threads: Option<usize>,
    /// Tokens that a conversation can hold; `None` takes the model's own context length. Memory is taken as tokens come.
    pub context: Option<usize>,
    /// How the model file is opened.
    pub open: OpenOptions,
}

/// A session of a language model with its tokenizer and chat template. Any number of conversations may share it; clones
/// are handles on the same model.
#[derive(Clone)]
pub struct LanguageModel(Arc<Inner>);

struct Inner {
    path: PathBuf,
    engine: Engine,
    session: Session,
    text: Option<Text>,
    context: usize,
    weights: WeightBytes,
}

/// The context where neither caller nor model names one.
const CONTEXT: usize = 4096;

impl LanguageModel {
    /// Opens a model that takes `input_ids` and gives `logits`, with the text that its metadata names.
    ///
    /// # Errors
    /// When the file or one that it needs is missing or wrong, or the model is none of language.
    pub fn open(path: impl AsRef<Path>, options: &LlmOptions) -> Result<LanguageModel, LlmError> {
        let path = path.as_ref();
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf")) {
            return Err(LlmError::Gguf { path: path.into() });
        }
        let engine = Engine::new(EngineOptions { threads: options.threads })?;
        let model = Arc::new(Model::open(path, &options.open)?);
        for (inputs, name) in [(true, "input_ids"), (false, "logits")] {
            let graph = model.graph();
            let ids = if inputs { graph.inputs() } else { graph.outputs() };
            if !ids.iter().any(|&id| graph.value_name(id) == name) {
                let missing = format!("{} `{name}`", if inputs { "input" } else { "output" });
                return Err(LlmError::NotALanguageModel { path: path.into(), missing });
            }
        }
        let declared = model.metadata_value("heirloom.context_length").and_then(|v| v.parse().ok());
        let context = options.context.or(declared).unwrap_or(CONTEXT).max(1);
        let weights = weight_bytes(&model);
        let session = engine.session(model.clone(), CachePolicy::fixed(context))?;
        let text = match Text::of(&model, path) {
            Ok(text) => Some(text),
            Err(LlmError::NoText { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(LanguageModel(Arc::new(Inner { path: path.into(), engine, session, text, context, weights })))
    }

    /// A conversation with nothing said yet.
    ///
    /// # Errors
    /// When the model's state cannot begin empty.
    pub fn conversation(&self) -> Result<Conversation, LlmError> {
        Conversation::new(self)
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Tokens that a conversation can hold.
    pub fn context(&self) -> usize {
        self.0.context
    }

    /// Bytes of the weights.
    pub fn weights(&self) -> WeightBytes {
        self.0.weights
    }

    fn text(&self) -> Result<&Text, LlmError> {
        self.0.text.as_ref().ok_or_else(|| LlmError::NoText { path: self.0.path.clone() })
    }

    /// The tokenizer.
    ///
    /// # Errors
    /// When the model carries none.
    pub fn tokenizer(&self) -> Result<&dyn Tokenizer, LlmError> {
        Ok(&*self.text()?.tokenizer)
    }

    /// A handle on the tokenizer, where the model has one.
    pub(super) fn shared_tokenizer(&self) -> Option<Arc<dyn Tokenizer>> {
        self.0.text.as_ref().map(|text| text.tokenizer.clone())
    }

    /// Whether the model says how a conversation is written.
    pub fn has_chat_template(&self) -> bool {
        self.0.text.as_ref().is_some_and(|t| t.template.is_some())
    }

    /// The tokens of a user's message, as the chat template writes it; of the text itself where there is no template.
    ///
    /// # Errors
    /// When tokenizer or template fail.
    pub fn encode_prompt(&self, prompt: &str) -> Result<Vec<u32>, LlmError> {
        if self.has_chat_template() {
            return self.encode_chat(&[Message::new("user", prompt)]);
        }
        self.encode_raw(prompt)
    }

    /// The tokens of a text, special tokens recognized.
    ///
    /// # Errors
    /// When the tokenizer fails.
    pub fn encode_raw(&self, text: &str) -> Result<Vec<u32>, LlmError> {
        Ok(self.tokenizer()?.encode(text, EncodeOptions::default())?)
    }

    /// The tokens of a conversation up to where the model's answer begins.
    ///
    /// # Errors
    /// When there is no template, or tokenizer or template fail.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, LlmError> {
        let text = self.text()?;
        let template = text.template.as_ref().ok_or(LlmError::NoTemplate)?;
        let prompt = template.render(&ChatRequest::new(Vec::from(messages)))?;
        Ok(encode_rendered(&*text.tokenizer, &prompt)?)
    }
}

impl std::fmt::Debug for LanguageModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LanguageModel({}, context {})", self.0.path.display(), self.0.context)
    }
}
