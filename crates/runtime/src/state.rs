//! One request's retained values over a session.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heirloom_mem::{Ledger, LentTensor};
use heirloom_types::Value;

use crate::publication::Publication;
use crate::report::sizes;
use crate::session::Retention;
use crate::{CallOptions, Feeds, Outputs, Report, RunError, Session, StateError};

/// The values that a model's persistent inputs have at the next call.
///
/// One call at a time: a second simultaneous `run`, `reset`, `truncate` or `close` is refused at once, never queued.
/// A call that fails or is cancelled leaves the state as it was; no backup copy exists, because nothing is overwritten.
/// `values`, `fork` and `report` work at any time and see the state between calls. Retained values are handles on the
/// very buffers that the call wrote; nothing copies their payload.
pub struct State {
    session: Session,
    /// Values in the order of the signature's bindings.
    values: Publication<Scratch, Vec<Value>>,
    ledger: Ledger,
    calls: AtomicU64,
}

/// Lists that calls use again.
#[derive(Default)]
struct Scratch {
    past: Vec<Value>,
    next: Vec<Value>,
}

/// Retained values by the name of their input. They stay valid and unchanged whatever becomes of the state.
#[derive(Clone, Debug)]
pub struct StateValues {
    session: Session,
    values: Vec<Value>,
}

impl State {
    pub(crate) fn new(session: Session, initial: Feeds<'_>) -> Result<State, StateError> {
        if session.0.signature.bindings.is_empty() {
            return Err(StateError::Stateless);
        }
        let values = accept(&session, initial)?;
        Ok(State::with(session, values))
    }

    fn with(session: Session, values: Vec<Value>) -> State {
        State {
            session,
            values: Publication::new(Scratch::default(), values),
            ledger: Ledger::default(),
            calls: AtomicU64::new(0),
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// One call: computes the outputs from `feeds` and the retained values, then retains what the model's bindings
    /// name. All or nothing.
    ///
    /// # Errors
    /// As [`Session::run`]; besides when the state is busy or closed, a retained input is fed, or an output cannot be
    /// retained.
    pub fn run<'f>(
        &self,
        feeds: impl Into<Feeds<'f>>,
        options: &CallOptions<'_>,
    ) -> Result<Outputs, RunError> {
        let mut call = self.values.begin().ok_or(RunError::Busy)?;
        let Scratch { past, next } = &mut *call;
        past.clear();
        next.clear();
        self.values.read(|values| past.extend(values.iter().cloned())).ok_or(RunError::Closed)?;
        let inner = &self.session.0;
        let mut frame = inner.frames.take();
        let before = frame.ledger.counts();
        let result = inner.call(&mut frame, feeds.into(), options, Some(Retention { past, next }));
        self.ledger.add(frame.ledger.counts() - before);
        past.clear();
        if result.is_ok() {
            let values = std::mem::take(next);
            call.next = self.values.publish(&call, values).unwrap_or_default();
            self.calls.fetch_add(1, Relaxed);
        }
        call.next.drain(..).for_each(|old| frame.recycle(old));
        inner.frames.put(frame);
        result
    }

    /// [`run`](State::run) with tensors that somebody lends for this call: see [`Session::run_lent`].
    ///
    /// # Errors
    /// As [`run`](State::run), and [`RunError::Lent`] where a lent tensor would be an output or be retained. The state is
    /// then as it was.
    pub fn run_lent<'f>(
        &self,
        feeds: impl Into<Feeds<'f>>,
        lent: &[(&'f str, LentTensor<'_>)],
        options: &CallOptions<'_>,
    ) -> Result<Outputs, RunError> {
        feeds.into().lending(lent, |feeds| self.run(feeds, options))
    }

    /// The retained values: shared views, no copies.
    ///
    /// # Errors
    /// When the state is closed.
    pub fn values(&self) -> Result<StateValues, StateError> {
        let values = self.values.read(Vec::clone).ok_or(StateError::Closed)?;
        Ok(StateValues { session: self.session.clone(), values })
    }

    /// Replaces all retained values.
    ///
    /// # Errors
    /// As [`Session::make_state`], and when the state is busy or closed. The state is then as it was.
    pub fn reset<'f>(&self, initial: impl Into<Feeds<'f>>) -> Result<(), StateError> {
        let call = self.values.begin().ok_or(StateError::Busy)?;
        if self.is_closed() {
            return Err(StateError::Closed);
        }
        drop(self.values.publish(&call, accept(&self.session, initial.into())?));
        Ok(())
    }

    /// Shortens every retained value to its first `rows` rows; what follows is written over by later calls.
    ///
    /// # Errors
    /// When a retained value is no cache that grew by appending or has fewer rows, its declared extent is fixed, or the
    /// state is busy or closed.
    /// The state is then as it was.
    pub fn truncate(&self, rows: usize) -> Result<(), StateError> {
        let call = self.values.begin().ok_or(StateError::Busy)?;
        let values = self.values.read(Vec::clone).ok_or(StateError::Closed)?;
        let bindings = &self.session.0.signature.bindings;
        let mut shorter = Vec::with_capacity(values.len());
        for (bound, value) in bindings.iter().zip(&values) {
            let unfit = |reason: String| {
                let name = self.session.0.signature.inputs[bound.input as usize].name.to_string();
                StateError::Unfit { name, reason }
            };
            let view =
                value.as_tensor().and_then(|tensor| tensor.append_view().map(|(view, _)| (tensor, view)));
            let (tensor, view) = view.ok_or_else(|| {
                unfit(format!(
                    "a {} that did not grow by appending cannot be truncated; use `reset`",
                    value.kind()
                ))
            })?;
            let cut = tensor.truncate_append(rows);
            shorter.push(
                cut.ok_or_else(|| unfit(format!("it holds {} rows, fewer than {rows}", view.len())))?.into(),
            );
        }
        let mut symbols = vec![None; self.session.0.signature.symbols.len()];
        for (bound, value) in bindings.iter().zip(&shorter) {
            let fits = self.session.0.signature.check(bound.input, value, &mut symbols);
            fits.map_err(|mismatch| StateError::Value {
                name: self.session.0.signature.inputs[bound.input as usize].name.to_string(),
                mismatch,
            })?;
        }
        drop(self.values.publish(&call, shorter));
        Ok(())
    }

    /// A second state that goes on from here, sharing all memory written so far.
    ///
    /// # Errors
    /// When the state is closed.
    pub fn fork(&self) -> Result<State, StateError> {
        let values = self.values.read(Vec::clone).ok_or(StateError::Closed)?;
        Ok(State::with(self.session.clone(), values))
    }

    /// Drops the retained values. Outputs and values that the caller holds stay valid. A second close does nothing.
    ///
    /// # Errors
    /// When a call is under way.
    pub fn close(&self) -> Result<(), StateError> {
        let call = self.values.begin().ok_or(StateError::Busy)?;
        drop(self.values.close(&call));
        Ok(())
    }

    /// Whether the state was closed.
    pub fn is_closed(&self) -> bool {
        self.values.read(|_| ()).is_none()
    }

    /// What the state holds, and what its calls did with memory so far.
    pub fn report(&self) -> Report {
        let (retained_bytes, reserved_bytes) = self
            .values
            .read(|values| values.iter().map(sizes).fold((0, 0), |(a, b), (c, d)| (a + c, b + d)))
            .unwrap_or_default();
        Report {
            calls: self.calls.load(Relaxed),
            counts: self.ledger.counts(),
            retained_bytes,
            reserved_bytes,
            scratch_bytes: self.session.0.frames.scratch_bytes() as u64,
        }
    }
}

/// Initial values in the order of the bindings, if there is exactly one for each persistent input and all fit.
fn accept(session: &Session, initial: Feeds<'_>) -> Result<Vec<Value>, StateError> {
    let signature = &session.0.signature;
    let mut values: Vec<Option<Value>> = signature.bindings.iter().map(|_| None).collect();
    let mut unknown = Vec::new();
    for (name, value) in initial {
        let binding = signature.input(name).and_then(|at| signature.inputs[at as usize].binding);
        match binding {
            None => unknown.push(name.to_string()),
            Some(at) => {
                if values[at as usize].replace(value).is_some() {
                    return Err(StateError::Twice { name: name.into() });
                }
            }
        }
    }
    if !unknown.is_empty() {
        return Err(StateError::Unknown {
            unknown,
            known: signature.input_names(|input| input.binding.is_some()),
        });
    }
    let name = |at: usize| signature.inputs[signature.bindings[at].input as usize].name.to_string();
    let missing: Vec<_> = (0..values.len()).filter(|&at| values[at].is_none()).map(name).collect();
    if !missing.is_empty() {
        return Err(StateError::Missing { missing });
    }
    let values: Vec<Value> = values.into_iter().flatten().collect();
    let mut symbols = vec![None; signature.symbols.len()];
    for (at, value) in values.iter().enumerate() {
        let fits = crate::declared::refuse_lent(value);
        let fits = fits.and_then(|()| crate::declared::refuse_strings(value)).map_err(Box::new);
        fits.and_then(|()| signature.check(signature.bindings[at].input, value, &mut symbols))
            .map_err(|mismatch| StateError::Value { name: name(at), mismatch })?;
    }
    Ok(values)
}

impl StateValues {
    /// The value retained for the input `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Names of persistent inputs and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let signature = &self.session.0.signature;
        let name = |bound: &crate::signature::Bound| &*signature.inputs[bound.input as usize].name;
        signature.bindings.iter().map(name).zip(&self.values)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'a> From<&'a StateValues> for Feeds<'a> {
    fn from(values: &'a StateValues) -> Feeds<'a> {
        values.iter().map(|(name, value)| (name, value.clone())).collect()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("session", &self.session).field("report", &self.report()).finish()
    }
}
