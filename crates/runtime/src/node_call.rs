//! One node outside of any model: for folding constants, for tests of kernels and for benchmarks.

use std::sync::Arc;

use heirloom_graph::{Attributes, Node, ValueId};
use heirloom_mem::{Counts, Ledger, Pool};
use heirloom_types::Value;

use crate::plan::{Constant, build, constant_facts};
use crate::{
    BuildCx, BuildError, CachePolicy, CancelToken, InputFacts, InputRef, Kernel, KernelError, KernelRegistry,
    Prepack, RunCx, SessionOptions, Team,
};

/// An input of a [`NodeCall`].
#[derive(Clone, Debug)]
pub enum NodeInput {
    /// Given to each run.
    Fed,
    /// The same in each run, and known to the kernel when it is built.
    Constant(Value),
    /// Left out.
    Absent,
}

/// A kernel chosen and built for one node.
pub struct NodeCall {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Option<InputRef>>,
    constants: Vec<Constant>,
    targets: Vec<Option<u32>>,
    values: Vec<Option<Value>>,
    pool: Pool,
    ledger: Ledger,
    team: Arc<dyn Team>,
    cancel: CancelToken,
    cache: CachePolicy,
}

/// Why a [`NodeCall`] could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeCallError {
    /// No registered kernel takes the node.
    #[error("no registered kernel takes `{op}` (version {opset}) with these attributes and inputs")]
    NoKernel {
        /// The operator.
        op: String,
        /// The version.
        opset: i64,
    },
    /// The kernel could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl NodeCall {
    /// Chooses and builds a kernel for an operator of ai.onnx, or of another domain written `domain.Operator`, with
    /// `outputs` outputs.
    ///
    /// # Errors
    /// When no kernel takes the node or it cannot be built.
    pub fn new(
        registry: &KernelRegistry,
        op: &str,
        opset: i64,
        attributes: Attributes,
        inputs: Vec<NodeInput>,
        outputs: usize,
    ) -> Result<NodeCall, NodeCallError> {
        NodeCall::prepacked(registry, op, opset, attributes, inputs, outputs, &Prepack::Off)
    }

    /// [`new`](NodeCall::new) with prepared objects.
    ///
    /// # Errors
    /// As [`new`](NodeCall::new).
    pub fn prepacked(
        registry: &KernelRegistry,
        op: &str,
        opset: i64,
        attributes: Attributes,
        inputs: Vec<NodeInput>,
        outputs: usize,
        prepack: &Prepack,
    ) -> Result<NodeCall, NodeCallError> {
        let (domain, op_type) = op.rsplit_once('.').unwrap_or(("", op));
        let id = |at: usize| ValueId(u32::try_from(at).expect("fewer than 2^32 values"));
        let node = Node {
            name: String::new(),
            op_type: op_type.into(),
            domain: domain.into(),
            overload: String::new(),
            inputs: inputs
                .iter()
                .enumerate()
                .map(|(at, i)| (!matches!(i, NodeInput::Absent)).then(|| id(at)))
                .collect(),
            outputs: (0..outputs).map(|at| Some(id(inputs.len() + at))).collect(),
            attributes,
        };
        let mut facts = Vec::with_capacity(inputs.len());
        let (mut refs, mut constants, mut fed) = (Vec::with_capacity(inputs.len()), Vec::new(), 0);
        for (at, input) in inputs.into_iter().enumerate() {
            let name: Arc<str> = format!("input {at}").into();
            match input {
                NodeInput::Absent => {
                    facts.push(None);
                    refs.push(None);
                }
                NodeInput::Fed => {
                    facts.push(Some(InputFacts { name: name.to_string(), ..InputFacts::default() }));
                    refs.push(Some(InputRef::Slot(fed)));
                    fed += 1;
                }
                NodeInput::Constant(value) => {
                    facts.push(Some(constant_facts(&name, &value)));
                    refs.push(Some(InputRef::Constant(constants.len() as u32)));
                    constants.push(Constant::new(value));
                }
            }
        }
        let cx = BuildCx { node: &node, opset, inputs: &facts };
        let spec = registry.choose(&cx).ok_or(NodeCallError::NoKernel { op: op.into(), opset })?;
        let SessionOptions { team, cache, .. } = SessionOptions::default();
        Ok(NodeCall {
            kernel: build(spec, &cx, prepack)?,
            inputs: refs,
            constants,
            targets: (0..outputs).map(|at| Some(at as u32)).collect(),
            values: (0..fed).map(|_| None).collect(),
            pool: Pool::new(),
            ledger: Ledger::default(),
            team,
            cancel: CancelToken::new(),
            cache,
        })
    }

    /// The same with these threads.
    #[must_use]
    pub fn team(mut self, team: Arc<dyn Team>) -> NodeCall {
        self.team = team;
        self
    }

    /// The same with this token.
    #[must_use]
    pub fn cancel(mut self, cancel: CancelToken) -> NodeCall {
        self.cancel = cancel;
        self
    }

    /// The same with this policy for caches.
    #[must_use]
    pub fn cache(mut self, cache: CachePolicy) -> NodeCall {
        self.cache = cache;
        self
    }

    /// Runs the kernel with a value for each [`NodeInput::Fed`]; the handles are moved in, so a kernel may write into
    /// buffers that the caller does not hold any more.
    ///
    /// # Errors
    /// What the kernel says; [`KernelError::MissingInput`] when there are too few values.
    pub fn run<V: Into<Value>>(
        &mut self,
        feeds: impl IntoIterator<Item = V>,
    ) -> Result<Vec<Value>, KernelError> {
        let mut feeds = feeds.into_iter();
        for (index, slot) in self.values.iter_mut().enumerate() {
            *slot = Some(feeds.next().ok_or(KernelError::MissingInput { index })?.into());
        }
        let mut outputs: Vec<Option<Value>> = self.targets.iter().map(|_| None).collect();
        let result = self.kernel.run(&mut RunCx {
            inputs: &self.inputs,
            last_use: u64::MAX,
            values: &mut self.values,
            constants: &self.constants,
            outputs: &mut outputs,
            targets: &self.targets,
            pool: &mut self.pool,
            ledger: &self.ledger,
            team: &*self.team,
            cancel: &self.cancel,
            cache: self.cache,
            budget: None,
        });
        self.values.fill_with(|| None);
        result?;
        outputs
            .into_iter()
            .enumerate()
            .map(|(index, value)| value.ok_or(KernelError::OutputNotSet { index }))
            .collect()
    }

    /// What the runs did with memory.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }
}
