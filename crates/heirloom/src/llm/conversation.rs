//! Tokens and the state that has seen them.

use std::sync::Arc;

use heirloom_mem::{Bytes, BytesMut, DType, Ledger, Tensor};
use heirloom_runtime::{CallOptions, CancelToken, Feeds, Profile, Report, State};
use heirloom_types::{Dim, Value, ValueType};

use super::{Generation, LanguageModel, LlmError, Request};

/// Tokens that one call takes at most: the scratch of a long prompt stays bounded.
const PIECE: usize = 512;

/// A state of a language model and the tokens that it has seen.
pub struct Conversation {
    model: LanguageModel,
    state: State,
    seen: Vec<u32>,
    /// The memory of the last call's token ids, for the next one's.
    ids: Option<Bytes>,
    /// The values of `logits_to_keep` for all logits and for the last; empty where the model has no such input.
    keep: Option<[Tensor; 2]>,
    profile: Option<Arc<Profile>>,
}

impl Conversation {
    pub(super) fn new(model: &LanguageModel) -> Result<Conversation, LlmError> {
        let session = model.session();
        // The first axis of a cache is the batch, whatever it is called; all other open axes begin empty.
        let mut extents: Vec<(String, usize)> = Vec::new();
        for slot in session.state_spec() {
            let Some(ValueType::Tensor(spec)) = slot.ty else { continue };
            for (axis, dim) in spec.dims.iter().flatten().enumerate() {
                if let Dim::Param(name) = dim
                    && !extents.iter().any(|(n, _)| **n == **name)
                {
                    extents.push((name.to_string(), usize::from(axis == 0)));
                }
            }
        }
        let extents: Vec<(&str, usize)> = extents.iter().map(|(n, e)| (&**n, *e)).collect();
        let initial = session.zeros(&extents)?;
        let feeds: Feeds<'_> = initial.iter().map(|(name, value)| (&**name, value.clone())).collect();
        let state = session.make_state(feeds)?;
        let keeps = session.inputs().any(|port| port.name == "logits_to_keep");
        let keep = keeps.then(|| [Tensor::scalar(0i64), Tensor::scalar(1i64)]);
        Ok(Conversation {
            model: model.clone(),
            state,
            seen: Vec::with_capacity(model.context()),
            ids: None,
            keep,
            profile: None,
        })
    }

    /// The model.
    pub fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// The tokens that the state has seen.
    pub fn seen(&self) -> &[u32] {
        &self.seen
    }

    /// The state itself: to fork, save or look at. A call that goes round this conversation makes [`seen`](Conversation::seen)
    /// untrue.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the state holds and what its calls did with memory.
    pub fn report(&self) -> Report {
        self.state.report()
    }

    /// From now on adds the time of each node to `profile`, or to none.
    pub fn set_profile(&mut self, profile: Option<Arc<Profile>>) {
        self.profile = profile;
    }

    /// Feeds `tokens` and gives the logits behind the last one, `[vocabulary]`. A failed or cancelled call leaves what
    /// the calls before it have seen; a prompt of several pieces is several calls.
    ///
    /// # Errors
    /// When there are no tokens or more than the context has room for, or a call fails or is cancelled.
    pub fn feed(&mut self, tokens: &[u32], cancel: Option<&CancelToken>) -> Result<Tensor, LlmError> {
        let mut last = None;
        self.check_room(tokens.len())?;
        for piece in tokens.chunks(PIECE) {
            last = Some(self.call(piece, true, cancel)?);
        }
        last.ok_or(LlmError::EmptyPrompt)
    }

    /// Feeds `tokens` in one call and gives the logits behind each, `[tokens, vocabulary]`.
    ///
    /// # Errors
    /// As [`Conversation::feed`].
    pub fn feed_all(&mut self, tokens: &[u32], cancel: Option<&CancelToken>) -> Result<Tensor, LlmError> {
        self.check_room(tokens.len())?;
        if tokens.is_empty() {
            return Err(LlmError::EmptyPrompt);
        }
        self.call(tokens, false, cancel)
    }

    pub(super) fn has_room(&self, tokens: usize) -> bool {
        self.seen.len() + tokens <= self.model.context()
    }

    pub(super) fn check_room(&self, tokens: usize) -> Result<(), LlmError> {
        let (used, context) = (self.seen.len(), self.model.context());
        if self.has_room(tokens) { Ok(()) } else { Err(LlmError::PromptTooLong { tokens, used, context }) }
    }

    fn call(
        &mut self,
        tokens: &[u32],
        last_only: bool,
        cancel: Option<&CancelToken>,
    ) -> Result<Tensor, LlmError> {
        let ids = self.ids_of(tokens)?;
        let mut feeds = Feeds::new().with("input_ids", ids);
        if let Some(values) = &self.keep {
            feeds.push("logits_to_keep", values[usize::from(last_only)].clone());
        }
        let options = CallOptions { cancel, outputs: Some(&["logits"]), profile: self.profile.as_deref() };
        let mut outputs = self.state.run(feeds, &options)?;
        self.seen.extend_from_slice(tokens);
        let Some(Value::Tensor(logits)) = outputs.take("logits") else {
            return Err(LlmError::Logits("they are no tensor".into()));
        };
        let &[1, rows, vocabulary] = logits.shape() else {
            return Err(LlmError::Logits(format!(
                "their shape is {:?}, not [1, tokens, vocabulary]",
                logits.shape()
            )));
        };
        if logits.dtype() != DType::Float || rows == 0 {
            return Err(LlmError::Logits(format!("they are {} {:?}", logits.dtype(), logits.shape())));
        }
        let both = [rows, vocabulary];
        let shape = if last_only && rows == 1 { &both[1..] } else { &both };
        logits.reshape(shape).map_err(|e| LlmError::Logits(e.to_string()))
    }

    /// `[1, tokens]` INT64, in the memory of the last call's ids where nobody else holds it.
    fn ids_of(&mut self, tokens: &[u32]) -> Result<Tensor, LlmError> {
        let bytes = tokens.len() * size_of::<i64>();
        let old = self.ids.take().and_then(|ids| ids.try_into_unique().ok());
        let old = old.filter(|ids| ids.len() == bytes);
        let mut ids = old.unwrap_or_else(|| BytesMut::zeroed(bytes, &Ledger::default()));
        ids.elements_mut::<i64>().iter_mut().zip(tokens).for_each(|(to, &token)| *to = i64::from(token));
        let ids = ids.freeze();
        self.ids = Some(ids.clone());
        Tensor::new(DType::Int64, &[1, tokens.len()], ids).map_err(|e| LlmError::Logits(e.to_string()))
    }

    /// Forgets all but the first `tokens` tokens. Nothing is copied.
    ///
    /// # Errors
    /// When the state has more than caches.
    pub fn truncate(&mut self, tokens: usize) -> Result<(), LlmError> {
        if tokens < self.seen.len() {
            self.state.truncate(tokens)?;
            self.seen.truncate(tokens);
        }
        Ok(())
    }

    /// Brings the conversation to exactly `tokens`, keeping what the state has seen of them already; gives the tokens
    /// that are still to be fed, at least one.
    ///
    /// # Errors
    /// As [`Conversation::truncate`].
    pub fn rewind_to<'t>(&mut self, tokens: &'t [u32]) -> Result<&'t [u32], LlmError> {
        let same = self.seen.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let keep = same.min(tokens.len().saturating_sub(1));
        self.truncate(keep)?;
        Ok(&tokens[keep..])
    }

    /// Feeds `prompt`, then generates tokens one at a time as the iterator is advanced.
    ///
    /// # Errors
    /// As [`Conversation::feed`].
    pub fn generate(
        &mut self,
        prompt: &[u32],
        request: &Request,
    ) -> Result<Generation<&mut Conversation>, LlmError> {
        Generation::new(self, prompt, request.clone()).map_err(|(_, error)| error)
    }

    /// [`generate`](Conversation::generate), with the conversation moved into the iterator;
    /// [`Generation::into_conversation`] gives it back.
    ///
    /// # Errors
    /// As [`Conversation::feed`], with the conversation.
    #[allow(clippy::result_large_err, reason = "the conversation comes back with the error")]
    pub fn into_generation(
        self,
        prompt: &[u32],
        request: &Request,
    ) -> Result<Generation<Conversation>, (Conversation, LlmError)> {
        Generation::new(self, prompt, request.clone())
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Conversation({} tokens seen)", self.seen.len())
    }
}
