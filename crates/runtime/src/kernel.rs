//! What a kernel is, how it is chosen for a node, and why it may refuse.

use heirloom_graph::{AttrError, Node};
use heirloom_mem::{ClaimError, DType, Shape, ViewError};
use heirloom_types::Value;
use rustc_hash::FxHashMap;

use crate::{Cancelled, DecodeError, PrepareCx, RunCx};

/// Computes one node. Built once when the session is made, then called any number of times, from several threads
/// at once for different calls; it keeps no state between calls.
pub trait Kernel: Send + Sync {
    /// Claims faster arrangements of constant inputs, for [`RunCx::prepared`] to ask for. Called once after the kernel was
    /// built, where the session keeps such objects; a kernel that has none does nothing, and one whose claim is not
    /// granted computes from the constant.
    fn prepare(&mut self, _cx: &PrepareCx<'_>) {}

    /// Reads the node's inputs and sets its outputs.
    ///
    /// # Errors
    /// When the inputs do not fit the operator, or the call was cancelled.
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError>;
}

/// What is known of an input before any call.
#[derive(Clone, Debug, Default)]
pub struct InputFacts {
    /// The value's name.
    pub name: String,
    /// The value itself, for an initializer that no feed may override.
    pub constant: Option<Value>,
    /// The (logical) element type, where it is known.
    pub dtype: Option<DType>,
    /// The shape, where every extent is known.
    pub shape: Option<Shape>,
    /// The node's output that is this input's value at the next call, where states retain it: a cache that grows. A `Slice`
    /// may shorten it before: a window.
    pub next: Option<usize>,
}

/// What a kernel is built from.
pub struct BuildCx<'a> {
    /// The node.
    pub node: &'a Node,
    /// The version of the node's domain that the model (or function) imports.
    pub opset: i64,
    /// What is known of each input; `None` where an optional input is left out.
    pub inputs: &'a [Option<InputFacts>],
}

impl BuildCx<'_> {
    /// The constant value of input `index`, if it has one.
    pub fn constant(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index)?.as_ref()?.constant.as_ref()
    }

    /// Whether no input is an encoded value: what a kernel for plain tensors accepts.
    pub fn plain_inputs(&self) -> bool {
        self.inputs.iter().flatten().all(|i| !matches!(i.constant, Some(Value::Encoded(_))))
    }
}

/// One kernel that may compute nodes of one operator.
#[derive(Clone, Copy)]
pub struct KernelSpec {
    /// The operator's domain; empty for ai.onnx.
    pub domain: &'static str,
    /// The operator.
    pub op: &'static str,
    /// The first and last opset version that the kernel computes rightly.
    pub versions: (i64, i64),
    /// Among kernels that accept a node the highest rank wins: 0 portable, 10 for this processor's instructions.
    pub rank: u32,
    /// Whether the kernel takes this node: its attributes, constant layouts, known types. A kernel that does not
    /// name a layout here never sees encoded bytes.
    pub accepts: fn(&BuildCx<'_>) -> bool,
    /// Makes the kernel.
    pub build: fn(&BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError>,
}

/// Why a kernel could not be made for a node.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An attribute is missing or of the wrong type.
    #[error(transparent)]
    Attribute(#[from] AttrError),
    /// An attribute has a value that the operator does not allow or this kernel does not honour.
    #[error("attribute `{name}` = {value} is not supported: {reason}")]
    Unsupported {
        /// The attribute.
        name: String,
        /// Its value.
        value: String,
        /// What is supported.
        reason: String,
    },
    /// An input is missing.
    #[error("input {index} is missing")]
    MissingInput {
        /// Its place.
        index: usize,
    },
}

/// Why a kernel failed. The session adds the node's name and operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A required input is absent.
    #[error("input {index} is missing")]
    MissingInput {
        /// Its place.
        index: usize,
    },
    /// An input is of the wrong kind or element type.
    #[error("input {index} is a {actual}, where the operator takes {expected}")]
    InputType {
        /// Its place.
        index: usize,
        /// What the operator takes.
        expected: String,
        /// What came.
        actual: String,
    },
    /// Shapes do not fit.
    #[error("{what}: {shapes:?}")]
    Shape {
        /// What must hold.
        what: &'static str,
        /// The shapes in question.
        shapes: Vec<Shape>,
    },
    /// An index or a parameter lies outside its range.
    #[error("{what}: {value} lies outside {low}..={high}")]
    Range {
        /// What is out of range.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The smallest allowed value.
        low: i64,
        /// The largest allowed value.
        high: i64,
    },
    /// A tensor cannot be viewed as the kernel needs it.
    #[error(transparent)]
    View(Box<ViewError>),
    /// A cache cannot take the rows.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// An encoded value could not be decoded.
    #[error(transparent)]
    Decode(Box<DecodeError>),
    /// The call's token was used.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A size overflows or is more than the limits allow.
    #[error("{what} of {size} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: u128,
        /// The limit.
        limit: u128,
    },
    /// The kernel ended without setting an output that somebody wants: a fault of the kernel.
    #[error("the kernel did not set output {index}")]
    OutputNotSet {
        /// Its place.
        index: usize,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<ViewError> for KernelError {
    fn from(error: ViewError) -> KernelError {
        KernelError::View(Box::new(error))
    }
}

/// The kernels that a session may choose from.
#[derive(Clone, Default)]
pub struct KernelRegistry {
    /// By operator.
    specs: FxHashMap<&'static str, Vec<KernelSpec>>,
}

impl KernelRegistry {
    /// No kernels.
    pub fn new() -> KernelRegistry {
        KernelRegistry::default()
    }

    /// These kernels and `specs`.
    #[must_use]
    pub fn with(mut self, specs: impl IntoIterator<Item = KernelSpec>) -> KernelRegistry {
        for spec in specs {
            self.specs.entry(spec.op).or_default().push(spec);
        }
        self
    }

    /// All kernels of an operator; the domain is empty for ai.onnx.
    pub fn of<'a>(&'a self, domain: &'a str, op: &'a str) -> impl Iterator<Item = &'a KernelSpec> {
        self.specs.get(op).into_iter().flatten().filter(move |s| s.domain == domain)
    }

    /// The highest-ranking kernel that takes the node; among equals the one registered first.
    pub fn choose(&self, cx: &BuildCx<'_>) -> Option<&KernelSpec> {
        let domain = if cx.node.domain == "ai.onnx" { "" } else { &*cx.node.domain };
        let mut best: Option<&KernelSpec> = None;
        for spec in self.specs.get(&*cx.node.op_type)? {
            let fits = spec.domain == domain && (spec.versions.0..=spec.versions.1).contains(&cx.opset);
            if fits && best.is_none_or(|best| spec.rank > best.rank) && (spec.accepts)(cx) {
                best = Some(spec);
            }
        }
        best
    }
}

impl std::fmt::Debug for KernelRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KernelRegistry({} kernels)", self.specs.values().map(Vec::len).sum::<usize>())
    }
}
