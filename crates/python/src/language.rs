//! Language models: prompts in, tokens out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use heirloom::llm::{
    Conversation, Generation, GenerationReport, LanguageModel, LlmError, LlmOptions, Request, Sampling,
};
use heirloom::text::Message;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{PyCounts, Watched, detached};
use crate::error::{Raise, Raised};
use crate::foreign::ReleaseOnDrop;
use crate::output;

impl Raise for LlmError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "LanguageError", kind, self);
        match self {
            LlmError::Model(error) => return error.raise(py),
            LlmError::Session(error) => return error.raise(py),
            LlmError::State(error) => return error.raise(py),
            LlmError::Run(error) => return error.raise(py),
            LlmError::NotALanguageModel { path, missing } => {
                new("not_a_language_model").with("path", path.display().to_string()).with("missing", missing)
            }
            LlmError::Gguf { path } => {
                let path = path.display().to_string();
                let message = format!(
                    "`{path}` is a GGUF file: make a model of it with `heirloom.gguf.import_model({path:?})`"
                );
                Raised::new(py, "LanguageError", "gguf", message).with("path", path)
            }
            LlmError::NoText { path } => new("no_text").with("path", path.display().to_string()),
            LlmError::NoTemplate => new("no_template"),
            LlmError::PromptTooLong { tokens, used, context } => {
                new("prompt_too_long").with("tokens", *tokens).with("used", *used).with("context", *context)
            }
            LlmError::EmptyPrompt => new("empty_prompt"),
            LlmError::Text(_) | LlmError::TextFile { .. } | LlmError::TextLocation { .. } => new("text"),
            LlmError::Logits(_) => new("logits"),
            _ => new("other"),
        }
        .err()
    }
}

#[pyclass(frozen, name = "LanguageModel", module = "heirloom._native")]
pub(crate) struct PyLanguageModel(LanguageModel);

#[pymethods]
impl PyLanguageModel {
    #[staticmethod]
    #[pyo3(signature = (path, threads, context))]
    fn open(
        py: Python<'_>,
        path: std::path::PathBuf,
        threads: Option<usize>,
        context: Option<usize>,
    ) -> PyResult<PyLanguageModel> {
        let options = LlmOptions { threads, context, ..LlmOptions::default() };
        detached(py, || LanguageModel::open(path, &options)).map(PyLanguageModel)
    }

    #[getter]
    fn context(&self) -> usize {
        self.0.context()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.0.engine().threads()
    }

    #[getter]
    fn has_chat_template(&self) -> bool {
        self.0.has_chat_template()
    }

    #[getter]
    fn weight_bytes(&self) -> (u64, u64) {
        let weights = self.0.weights();
        (weights.mapped, weights.private)
    }

    #[getter]
    fn end_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.0.tokenizer().map(|tokenizer| tokenizer.end_tokens().into()).map_err(|e| e.raise(py))
    }

    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        self.0.encode_raw(text).map_err(|error| error.raise(py))
    }

    fn encode_prompt(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        self.0.encode_prompt(text).map_err(|error| error.raise(py))
    }

    fn encode_chat(&self, py: Python<'_>, messages: Vec<(String, String)>) -> PyResult<Vec<u32>> {
        let messages: Vec<Message> =
            messages.iter().map(|(role, content)| Message::new(role, content)).collect();
        self.0.encode_chat(&messages).map_err(|error| error.raise(py))
    }

    fn decode(&self, py: Python<'_>, ids: Vec<u32>, skip_special: bool) -> PyResult<String> {
        let tokenizer = self.0.tokenizer().map_err(|error| error.raise(py))?;
        tokenizer.decode(&ids, skip_special).map_err(|error| LlmError::Text(error).raise(py))
    }

    fn conversation(&self, py: Python<'_>) -> PyResult<PyConversation> {
        let conversation = detached(py, || self.0.conversation())?;
        Ok(PyConversation { held: Mutex::new(Held::Idle(Box::new(conversation))), _release: ReleaseOnDrop })
    }
}

/// A conversation, or the generation that has it at present.
enum Held {
    Idle(Box<Conversation>),
    Generating(Box<Generation<Conversation>>),
    /// Only while one becomes the other.
    Moved,
}

#[pyclass(frozen, name = "Conversation", module = "heirloom._native")]
pub(crate) struct PyConversation {
    held: Mutex<Held>,
    _release: ReleaseOnDrop,
}

impl PyConversation {
    /// The conversation, unless another thread uses it.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Held>> {
        match self.held.try_lock() {
            Ok(guard) => Ok(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Ok(PoisonError::into_inner(poisoned)),
            Err(std::sync::TryLockError::WouldBlock) => {
                Err(Raised::new(py, "BusyError", "busy", "the conversation is busy in another thread").err())
            }
        }
    }

    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut Conversation) -> PyResult<R>) -> PyResult<R> {
        match &mut *self.lock(py)? {
            Held::Idle(conversation) => work(conversation),
            _ => Err(generating(py)),
        }
    }
}

fn generating(py: Python<'_>) -> PyErr {
    let message = "the conversation is being generated: finish or close that iterator first";
    Raised::new(py, "BusyError", "busy", message).err()
}

#[pymethods]
impl PyConversation {
    #[getter]
    fn seen(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.with(py, |conversation| Ok(conversation.seen().into()))
    }

    /// Feeds tokens and gives the logits behind the last one, or behind each.
    fn feed<'py>(
        &self,
        py: Python<'py>,
        tokens: Vec<u32>,
        all: bool,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let watched = Watched::new(py, None, timeout)?;
        let logits = self.with(py, |conversation| {
            let result = py.detach(|| {
                let cancel = Some(&watched.token);
                if all { conversation.feed_all(&tokens, cancel) } else { conversation.feed(&tokens, cancel) }
            });
            result.map_err(|error| watched.raised().unwrap_or_else(|| error.raise(py)))
        })?;
        output::array(py, logits, false)
    }

    fn truncate(&self, py: Python<'_>, tokens: usize) -> PyResult<()> {
        self.with(py, |conversation| conversation.truncate(tokens).map_err(|error| error.raise(py)))
    }

    /// Keeps what the state has seen of these tokens, and gives those that are still to be fed.
    fn rewind_to(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<Vec<u32>> {
        self.with(py, |conversation| {
            conversation.rewind_to(&tokens).map(Into::into).map_err(|error| error.raise(py))
        })
    }

    /// Feeds the prompt and begins to generate; `advance` goes on.
    #[expect(clippy::too_many_arguments, reason = "the fields of a request")]
    fn begin(
        &self,
        py: Python<'_>,
        prompt: Vec<u32>,
        max_tokens: usize,
        temperature: f32,
        top_k: usize,
        top_p: f32,
        seed: u64,
        ignore_end: bool,
    ) -> PyResult<()> {
        let watched = Watched::new(py, None, None)?;
        let mut held = self.lock(py)?;
        let conversation = match std::mem::replace(&mut *held, Held::Moved) {
            Held::Idle(conversation) => *conversation,
            other => {
                *held = other;
                return Err(generating(py));
            }
        };
        let sampling = Sampling { temperature, top_k, top_p, seed };
        let request = Request { max_tokens, sampling, ignore_end, cancel: watched.token.clone() };
        // The conversation comes back with the error.
        #[allow(clippy::result_large_err)]
        let generation = py.detach(|| conversation.into_generation(&prompt, &request));
        match generation {
            Ok(generation) => *held = Held::Generating(Box::new(generation)),
            Err((conversation, error)) => {
                *held = Held::Idle(Box::new(conversation));
                return Err(watched.raised().unwrap_or_else(|| error.raise(py)));
            }
        }
        match watched.raised() {
            Some(error) => {
                finish(&mut held);
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// The next token and the text that is complete now; `None` at the end.
    fn advance(&self, py: Python<'_>) -> PyResult<Option<(u32, String)>> {
        let mut held = self.lock(py)?;
        let Held::Generating(generation) = &mut *held else { return Ok(None) };
        let token = py.detach(|| generation.next());
        py.check_signals()?;
        match token {
            Some(Ok(token)) => Ok(Some((token.id, token.text.to_string()))),
            Some(Err(error)) => Err(error.raise(py)),
            None => Ok(None),
        }
    }

    /// Ends the generation: the text that was held back and what it took. `None` where there is none.
    fn end<'py>(&self, py: Python<'py>) -> PyResult<Option<(String, Bound<'py, PyDict>)>> {
        let mut held = self.lock(py)?;
        match finish(&mut held) {
            Some((rest, report)) => Ok(Some((rest, report_dict(py, &report)?))),
            None => Ok(None),
        }
    }
}

fn finish(held: &mut Held) -> Option<(String, GenerationReport)> {
    match std::mem::replace(held, Held::Moved) {
        Held::Generating(mut generation) => {
            let rest = generation.finish();
            let report = generation.report();
            *held = Held::Idle(Box::new(generation.into_conversation()));
            Some((rest, report))
        }
        other => {
            *held = other;
            None
        }
    }
}

fn report_dict<'py>(py: Python<'py>, report: &GenerationReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("prompt_tokens", report.prompt_tokens)?;
    dict.set_item("generated_tokens", report.generated_tokens)?;
    dict.set_item("prompt_seconds", report.prompt_seconds)?;
    dict.set_item("generated_seconds", report.generated_seconds)?;
    dict.set_item("steps", report.steps)?;
    dict.set_item("appended_bytes_per_token", report.appended_bytes_per_token)?;
    dict.set_item("stop", report.stop.map(|stop| stop.name()))?;
    dict.set_item("counts", Py::new(py, PyCounts(report.counts))?)?;
    Ok(dict)
}
