//! Generating tokens and reporting what it took.

use std::borrow::BorrowMut;
use std::time::Instant;

use heirloom_mem::{Counts, Tensor, heap_allocations};
use heirloom_runtime::{CancelToken, RunError};
use heirloom_text::StreamDecoder;
use smallvec::SmallVec;

use super::{Conversation, LlmError, Sampler, Sampling};

/// What to generate.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tokens at most.
    pub max_tokens: usize,
    /// How each is chosen.
    pub sampling: Sampling,
    /// Goes on behind the tokens that end a text.
    pub ignore_end: bool,
    /// Stops from outside.
    pub cancel: CancelToken,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            max_tokens: 256,
            sampling: Sampling::default(),
            ignore_end: false,
            cancel: CancelToken::new(),
        }
    }
}

/// Why generation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model ended its text.
    EndOfText,
    /// As many tokens as were asked for.
    Length,
    /// The context has no room for another token.
    ContextFull,
    /// It was cancelled; the state holds the tokens up to then.
    Cancelled,
}

impl StopReason {
    /// `end_of_text`, `length`, `context_full` or `cancelled`.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::EndOfText => "end_of_text",
            StopReason::Length => "length",
            StopReason::ContextFull => "context_full",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// One generated token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// The text that is complete now that it has come: whole characters, sometimes none.
    pub text: TokenText,
}

/// A short text, kept without an allocation.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenText(SmallVec<[u8; 32]>);

impl From<&str> for TokenText {
    fn from(text: &str) -> TokenText {
        TokenText(SmallVec::from_slice(text.as_bytes()))
    }
}

impl std::ops::Deref for TokenText {
    type Target = str;
    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made of a str")
    }
}

impl std::fmt::Display for TokenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

impl std::fmt::Debug for TokenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, f)
    }
}

/// What a generation took.
#[derive(Clone, Debug, Default)]
pub struct GenerationReport {
    /// Tokens of the prompt that were fed.
    pub prompt_tokens: usize,
    /// Tokens generated.
    pub generated_tokens: usize,
    /// Seconds until the prompt's logits were there.
    pub prompt_seconds: f64,
    /// Seconds of the calls behind the prompt, and of choosing tokens.
    pub generated_seconds: f64,
    /// Calls behind the prompt: one less than tokens, since the first comes from the prompt's logits.
    pub steps: usize,
    /// What the calls of this generation did with memory.
    pub counts: Counts,
    /// Bytes appended by each call behind the prompt; `None` before the second token, or where they differ.
    pub appended_bytes_per_token: Option<u64>,
    /// Heap allocations of one step (call, choice and text): the median of the later half of the steps. 0 where the
    /// program does not count allocations.
    pub steady_allocations_per_token: u64,
    /// Why it stopped; `None` while it goes on.
    pub stop: Option<StopReason>,
}

/// Generates tokens as it is advanced, for a conversation that it borrows or owns. Dropping it stops; the conversation
/// keeps what it has seen.
pub struct Generation<C> {
    conversation: C,
    request: Request,
    sampler: Sampler,
    decoder: Option<StreamDecoder<'static>>,
    logits: Option<Tensor>,
    /// Chosen and not yet fed.
    pending: Option<u32>,
    before: Counts,
    appended: Vec<u64>,
    allocations: Vec<u64>,
    report: GenerationReport,
}

impl<C: BorrowMut<Conversation>> Generation<C> {
    #[allow(clippy::result_large_err, reason = "the conversation comes back with the error")]
    pub(super) fn new(
        mut conversation: C,
        prompt: &[u32],
        request: Request,
    ) -> Result<Generation<C>, (C, LlmError)> {
        let held = conversation.borrow_mut();
        let before = held.report().counts;
        let started = Instant::now();
        let mut report = GenerationReport { prompt_tokens: prompt.len(), ..GenerationReport::default() };
        let logits = match held.feed(prompt, Some(&request.cancel)) {
            Ok(logits) => Some(logits),
            Err(LlmError::Run(RunError::Cancelled { .. })) => {
                report.stop = Some(StopReason::Cancelled);
                None
            }
            Err(error) => return Err((conversation, error)),
        };
        report.prompt_seconds = started.elapsed().as_secs_f64();
        let decoder = held.model().shared_tokenizer().map(StreamDecoder::shared);
        let sampler = Sampler::new(request.sampling);
        let room = request.max_tokens.min(held.model().context());
        let (appended, allocations) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Ok(Generation {
            conversation,
            request,
            sampler,
            decoder,
            logits,
            pending: None,
            before,
            appended,
            allocations,
            report,
        })
    }

    /// The conversation, which has seen what was fed so far.
    pub fn into_conversation(self) -> C {
        self.conversation
    }

    /// What it took so far.
    pub fn report(&self) -> GenerationReport {
        let mut report = self.report.clone();
        report.counts = self.conversation.borrow().report().counts - self.before;
        let first = self.appended.first().copied();
        report.appended_bytes_per_token = first.filter(|first| self.appended.iter().all(|a| a == first));
        let mut later = Vec::from(&self.allocations[self.allocations.len() / 2..]);
        later.sort_unstable();
        report.steady_allocations_per_token = later.get(later.len() / 2).copied().unwrap_or(0);
        report
    }

    /// Text that was held back because its character is not complete.
    pub fn finish(&mut self) -> String {
        self.decoder.as_mut().map(|d| d.finish().to_owned()).unwrap_or_default()
    }

    fn step(&mut self) -> Result<Option<Token>, LlmError> {
        if self.report.generated_tokens >= self.request.max_tokens {
            return Ok(self.stop(StopReason::Length));
        }
        if self.request.cancel.is_cancelled() {
            return Ok(self.stop(StopReason::Cancelled));
        }
        let conversation = self.conversation.borrow_mut();
        if let Some(token) = self.pending.take() {
            if !conversation.has_room(1) {
                return Ok(self.stop(StopReason::ContextFull));
            }
            let before = conversation.report().counts;
            self.logits = None;
            match conversation.feed(&[token], Some(&self.request.cancel)) {
                Ok(logits) => self.logits = Some(logits),
                Err(LlmError::Run(RunError::Cancelled { .. })) => return Ok(self.stop(StopReason::Cancelled)),
                Err(error) => return Err(error),
            }
            self.appended.push((conversation.report().counts - before).appended_bytes);
            self.report.steps += 1;
        }
        let Some(logits) = &self.logits else { return Ok(None) };
        let logits = logits.as_slice::<f32>().map_err(|e| LlmError::Logits(e.to_string()))?;
        let token = self.sampler.next(logits).ok_or_else(|| LlmError::Logits("none is a number".into()))?;
        let ends = || conversation.model().tokenizer().is_ok_and(|t| t.end_tokens().contains(&token));
        if !self.request.ignore_end && ends() {
            return Ok(self.stop(StopReason::EndOfText));
        }
        self.pending = Some(token);
        self.report.generated_tokens += 1;
        let text = self.decoder.as_mut().map(|d| d.push(token).into()).unwrap_or_default();
        Ok(Some(Token { id: token, text }))
    }

    fn stop(&mut self, reason: StopReason) -> Option<Token> {
        self.report.stop = Some(reason);
        None
    }
}

impl<C: BorrowMut<Conversation>> Iterator for Generation<C> {
    type Item = Result<Token, LlmError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.report.stop.is_some() {
            return None;
        }
        let (started, allocations) = (Instant::now(), heap_allocations());
        let result = self.step();
        self.report.generated_seconds += started.elapsed().as_secs_f64();
        self.allocations.push(heap_allocations() - allocations);
        if result.is_err() {
            // Nothing more can come of it.
            self.report.stop.get_or_insert(StopReason::Cancelled);
        }
        result.transpose()
    }
}
