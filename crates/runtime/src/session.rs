//! A model bound to kernels, ready to be called from any number of threads.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use heirloom_graph::Model;
use heirloom_mem::{Ledger, LentTensor, Storage};
use heirloom_types::{Value, ValueType};
use smallvec::SmallVec;

use crate::exec::{self, Env, Fault, Frame, Frames};
use crate::plan::{Plan, lower};
use crate::signature::Signature;
use crate::{
    CallOptions, CancelToken, Feeds, KernelError, KernelRegistry, Outputs, Report, RunError, SessionError,
    SessionOptions, State, StateError,
};

/// A model with a kernel for each node. Immutable; clones share it. Calls may run at the same time.
///
/// The session keeps its model alive. Neither binding nor a call reads or copies an initializer's payload, serializes,
/// hashes or compares the model.
#[derive(Clone)]
pub struct Session(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    model: Arc<Model>,
    registry: KernelRegistry,
    options: SessionOptions,
    pub signature: Arc<Signature>,
    plan: Arc<Plan>,
    /// Plans for calls that override initializers, by the overridden inputs.
    variants: Mutex<Vec<Variant>>,
    pub frames: Frames,
    ledger: Ledger,
    calls: AtomicU64,
    /// The token of calls that have none.
    never: CancelToken,
}

/// Overridden inputs and the plan for them.
type Variant = (SmallVec<[u32; 4]>, Arc<Plan>);

/// An input that a state retains, as the model declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSlot {
    /// The input.
    pub input: String,
    /// The output that supplies its next value.
    pub output: String,
    /// The input's declared type with its symbolic dimensions.
    pub ty: Option<ValueType>,
}

/// An input or output, as the model declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name.
    pub name: String,
    /// The declared type with its symbolic dimensions.
    pub ty: Option<ValueType>,
    /// Whether a call may leave it out because the model has an initializer of this name. False for outputs.
    pub has_default: bool,
    /// Whether a persistent binding names it.
    pub persistent: bool,
}

/// Keeps the most plans for overridden initializers; more are made anew each time.
const VARIANTS: usize = 8;

impl Session {
    /// Binds `model` to the kernels of `registry`.
    ///
    /// # Errors
    /// When nodes have no kernel (all of them are named), a binding is wrong, or the graph cannot be executed.
    pub fn new(
        model: Arc<Model>,
        registry: &KernelRegistry,
        options: SessionOptions,
    ) -> Result<Session, SessionError> {
        if let Some(fault) = options.cache.fault() {
            return Err(SessionError::CachePolicy { fault });
        }
        let signature = Arc::new(Signature::new(model.graph(), options.free_symbols)?);
        let plan = Arc::new(lower::plan(&model, registry, &options, &signature, &[])?);
        Ok(Session(Arc::new(Inner {
            model,
            registry: registry.clone(),
            options,
            signature,
            plan,
            variants: Mutex::default(),
            frames: Frames::default(),
            ledger: Ledger::default(),
            calls: AtomicU64::new(0),
            never: CancelToken::new(),
        })))
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.0.model
    }

    /// The choices that the session was made with.
    pub fn options(&self) -> &SessionOptions {
        &self.0.options
    }

    /// Computes the outputs from `feeds` alone; persistent inputs are fed like all others.
    ///
    /// # Errors
    /// When feeds are missing, unknown or unfit (nothing is computed then), a node fails, or the call is cancelled.
    pub fn run<'f>(
        &self,
        feeds: impl Into<Feeds<'f>>,
        options: &CallOptions<'_>,
    ) -> Result<Outputs, RunError> {
        let mut frame = self.0.frames.take();
        let result = self.0.call(&mut frame, feeds.into(), options, None);
        self.0.frames.put(frame);
        result
    }

    /// [`run`](Session::run) with tensors that somebody lends for this call: their bytes are used in place, whoever owns
    /// them, and no output may share them.
    ///
    /// # Errors
    /// As [`run`](Session::run), and [`RunError::Lent`] where an output would be such a tensor, or a view of one. It is
    /// never copied instead.
    pub fn run_lent<'f>(
        &self,
        feeds: impl Into<Feeds<'f>>,
        lent: &[(&'f str, LentTensor<'_>)],
        options: &CallOptions<'_>,
    ) -> Result<Outputs, RunError> {
        feeds.into().lending(lent, |feeds| self.run(feeds, options))
    }

    /// The inputs in the model's order.
    pub fn inputs(&self) -> impl Iterator<Item = Port> {
        self.0.signature.inputs.iter().map(|input| Port {
            name: input.name.to_string(),
            ty: input.ty.clone(),
            has_default: input.has_default,
            persistent: input.binding.is_some(),
        })
    }

    /// The outputs in the model's order.
    pub fn outputs(&self) -> impl Iterator<Item = Port> {
        self.0.signature.outputs.iter().map(|output| Port {
            name: output.name.to_string(),
            ty: output.ty.clone(),
            has_default: false,
            persistent: output.binding.is_some(),
        })
    }

    /// The inputs that a state retains.
    pub fn state_spec(&self) -> Vec<StateSlot> {
        let signature = &self.0.signature;
        let slot = |bound: &crate::signature::Bound| {
            let input = &signature.inputs[bound.input as usize];
            let output = signature.outputs[bound.output as usize].name.to_string();
            StateSlot { input: input.name.to_string(), output, ty: input.ty.clone() }
        };
        signature.bindings.iter().map(slot).collect()
    }

    /// A state that begins with `initial` values for all persistent inputs. The handles are kept, nothing is copied.
    ///
    /// # Errors
    /// When the model has no bindings, values are missing, unknown or unfit, or hold strings.
    pub fn make_state<'f>(&self, initial: impl Into<Feeds<'f>>) -> Result<State, StateError> {
        State::new(self.clone(), initial.into())
    }

    /// What the session's calls (those of its states too) did with memory so far.
    pub fn report(&self) -> Report {
        Report {
            calls: self.0.calls.load(Relaxed),
            counts: self.0.ledger.counts(),
            scratch_bytes: self.0.frames.scratch_bytes() as u64,
            ..Report::default()
        }
    }

    /// Gives the working memory that waits for later calls back to the system.
    pub fn trim(&self) {
        self.0.frames.trim();
    }
}

/// The outputs that a call's caller gets.
#[derive(Default)]
struct Wanted {
    values: SmallVec<[(u32, Value); 2]>,
    /// See [`Outputs`].
    exclusive: u64,
}

impl Wanted {
    /// Notes that the value which is added next lies in memory that nothing else refers to, if it does.
    fn note_exclusive(&mut self, value: &Value) {
        if let Value::Tensor(tensor) = value
            && let Storage::Dense(bytes) = tensor.storage()
            && bytes.is_unique()
            && self.values.len() < 64
        {
            self.exclusive |= 1 << self.values.len();
        }
    }
}

/// What a state's call reads and leaves.
pub(crate) struct Retention<'a> {
    /// The retained values, in the order of the signature's bindings; emptied by the call.
    pub past: &'a mut Vec<Value>,
    /// Receives the next values in the same order.
    pub next: &'a mut Vec<Value>,
}

impl Inner {
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// One call. On failure the frame is empty again and `retention.next` may hold anything.
    pub(crate) fn call(
        &self,
        frame: &mut Frame,
        feeds: Feeds<'_>,
        options: &CallOptions<'_>,
        retention: Option<Retention<'_>>,
    ) -> Result<Outputs, RunError> {
        let before = frame.ledger.counts();
        let lent = feeds.lent;
        let result = self.call_in(frame, feeds, options, retention);
        if result.is_err() || lent {
            frame.clear();
        }
        if result.is_ok() {
            self.calls.fetch_add(1, Relaxed);
        }
        let counts = frame.ledger.counts() - before;
        self.ledger.add(counts);
        result.map(|wanted| Outputs {
            signature: self.signature.clone(),
            values: wanted.values,
            exclusive: wanted.exclusive,
            counts,
        })
    }

    fn call_in(
        &self,
        frame: &mut Frame,
        feeds: Feeds<'_>,
        options: &CallOptions<'_>,
        mut retention: Option<Retention<'_>>,
    ) -> Result<Wanted, RunError> {
        let signature = &*self.signature;
        let lent = feeds.lent;
        self.check_wanted(options)?;
        frame.reset(signature.inputs.len(), signature.symbols.len());
        let overridden = self.place_feeds(frame, feeds, retention.is_some())?;
        if let Some(retention) = &mut retention {
            for (bound, value) in signature.bindings.iter().zip(retention.past.drain(..)) {
                frame.inputs[bound.input as usize] = Some(value);
            }
        }
        self.fill_defaults(frame, retention.is_some())?;
        for at in 0..signature.inputs.len() {
            if let Some(value) = &frame.inputs[at] {
                signature.check(at as u32, value, &mut frame.symbols).map_err(|mismatch| {
                    RunError::Input { name: signature.inputs[at].name.to_string(), mismatch }
                })?;
            }
        }
        let variant;
        let plan: &Plan = if overridden.is_empty() {
            &self.plan
        } else {
            variant = self.variant(overridden)?;
            &variant
        };
        self.execute(frame, plan, options)?;
        self.collect(frame, plan, options, retention, lent)
    }

    fn check_wanted(&self, options: &CallOptions<'_>) -> Result<(), RunError> {
        let unknown =
            options.outputs.unwrap_or(&[]).iter().find(|name| self.signature.output(name).is_none());
        match unknown {
            None => Ok(()),
            Some(name) => {
                Err(RunError::UnknownOutput { name: (*name).into(), known: self.signature.output_names() })
            }
        }
    }

    /// Moves the feeds to the frame's inputs; returns the initializers that they override, sorted.
    fn place_feeds(
        &self,
        frame: &mut Frame,
        feeds: Feeds<'_>,
        stateful: bool,
    ) -> Result<SmallVec<[u32; 4]>, RunError> {
        let signature = &*self.signature;
        let mut overridden = SmallVec::new();
        let mut unknown = Vec::new();
        for (name, value) in feeds {
            let Some(at) = signature.input(name) else {
                unknown.push(name.to_string());
                continue;
            };
            let input = &signature.inputs[at as usize];
            if stateful && input.binding.is_some() {
                return Err(RunError::FeedsRetained { name: name.into() });
            }
            if frame.inputs[at as usize].replace(value).is_some() {
                return Err(RunError::FedTwice { name: name.into() });
            }
            if input.has_default && input.binding.is_none() {
                overridden.push(at);
            }
        }
        if !unknown.is_empty() {
            let known = signature.input_names(|input| !stateful || input.binding.is_none());
            return Err(RunError::UnknownFeeds { unknown, known });
        }
        overridden.sort_unstable();
        Ok(overridden)
    }

    /// Finds the inputs that nobody fed. Persistent inputs of a stateless call may have an initializer.
    fn fill_defaults(&self, frame: &mut Frame, stateful: bool) -> Result<(), RunError> {
        let signature = &*self.signature;
        let mut missing = Vec::new();
        for (at, input) in signature.inputs.iter().enumerate() {
            if frame.inputs[at].is_some() || (input.has_default && input.binding.is_none()) {
                continue;
            }
            let graph = self.model.graph();
            let default =
                graph.initializer(graph.inputs()[at]).and_then(|initializer| initializer.value().ok());
            match default {
                Some(value) => frame.inputs[at] = Some(value),
                None => missing.push(input.name.to_string()),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let known = signature.input_names(|input| !stateful || input.binding.is_none());
        Err(RunError::MissingFeeds { missing, known })
    }

    fn execute(&self, frame: &mut Frame, plan: &Plan, options: &CallOptions<'_>) -> Result<(), RunError> {
        frame.prepare(plan);
        for (&input, slot) in plan.inputs.iter().zip(&plan.root.params) {
            match (slot, frame.inputs[input as usize].take()) {
                (Some(slot), Some(value)) => frame.values[*slot as usize] = Some(value),
                (_, Some(value)) => frame.recycle(value),
                (_, None) => {}
            }
        }
        let ledger = frame.ledger.clone();
        let env = Env {
            constants: &plan.constants,
            ledger: &ledger,
            team: &*self.options.team,
            cancel: options.cancel.unwrap_or(&self.never),
            cache: self.options.cache,
            profile: options.profile,
            budget: None,
        };
        exec::run_block(&env, frame, &plan.root).map_err(|fault| failed(*fault))
    }

    fn collect(
        &self,
        frame: &mut Frame,
        plan: &Plan,
        options: &CallOptions<'_>,
        mut retention: Option<Retention<'_>>,
        lent: bool,
    ) -> Result<Wanted, RunError> {
        let signature = &*self.signature;
        let mut wanted = Wanted::default();
        for (at, (output, result)) in signature.outputs.iter().zip(&plan.root.results).enumerate() {
            let value =
                exec::result(&plan.constants, frame, *result).expect("a plan sets each of its results");
            if lent && crate::declared::is_lent(&value) {
                let wants = options.outputs.is_none_or(|names| names.contains(&&*output.name));
                if wants || (retention.is_some() && output.binding.is_some()) {
                    return Err(RunError::Lent { output: output.name.to_string() });
                }
            }
            let wants = options.outputs.is_none_or(|names| names.contains(&&*output.name));
            if let (Some(retention), Some(_)) = (&mut retention, output.binding) {
                if wants {
                    frame.lend(&value);
                    wanted.values.push((at as u32, value.clone()));
                }
                retention.next.push(value);
            } else if wants {
                wanted.note_exclusive(&value);
                frame.lend(&value);
                wanted.values.push((at as u32, value));
            } else {
                frame.recycle(value);
            }
        }
        if let Some(retention) = retention {
            self.validate(frame, retention.next)?;
        }
        Ok(wanted)
    }

    /// Whether the next values of a state fit the inputs that they are for, and each other.
    fn validate(&self, frame: &mut Frame, next: &[Value]) -> Result<(), RunError> {
        let signature = &*self.signature;
        frame.symbols.fill(None);
        for (bound, value) in signature.bindings.iter().zip(next) {
            let fits = crate::declared::refuse_strings(value).map_err(Box::new);
            fits.and_then(|()| signature.check(bound.input, value, &mut frame.symbols)).map_err(
                |mismatch| RunError::Retained {
                    output: signature.outputs[bound.output as usize].name.to_string(),
                    input: signature.inputs[bound.input as usize].name.to_string(),
                    mismatch,
                },
            )?;
        }
        Ok(())
    }

    /// The plan for calls that override these initializers.
    fn variant(&self, overridden: SmallVec<[u32; 4]>) -> Result<Arc<Plan>, RunError> {
        let lock = || self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = lock().iter().find(|(key, _)| *key == overridden) {
            return Ok(plan.clone());
        }
        let plan = lower::plan(&self.model, &self.registry, &self.options, &self.signature, &overridden)
            .map_err(|error| RunError::Rebind(Box::new(error)))?;
        let plan = Arc::new(plan);
        let mut variants = lock();
        if variants.len() < VARIANTS {
            variants.push((overridden, plan.clone()));
        }
        Ok(plan)
    }
}

fn failed(Fault { label, error }: Fault) -> RunError {
    match error {
        KernelError::Cancelled(_) => RunError::Cancelled { node: label.name.to_string() },
        error => {
            RunError::Node { node: label.name.to_string(), op: label.op.to_string(), source: Box::new(error) }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signature = &self.0.signature;
        f.debug_struct("Session")
            .field("inputs", &signature.input_names(|_| true))
            .field("outputs", &signature.output_names())
            .field("bindings", &signature.bindings.len())
            .finish_non_exhaustive()
    }
}
