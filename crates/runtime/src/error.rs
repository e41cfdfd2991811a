//! Why a session could not be made, a call failed, or a state refused.

use std::fmt;

use heirloom_mem::DType;

use crate::{BuildError, DecodeError, KernelError};

/// Why a session could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Nodes that nothing here can compute: all of them.
    #[error("{} the model cannot run:{}", count(.0.len(), "node of", "nodes of"), lines(.0))]
    Nodes(Vec<NodeFault>),
    /// The choices for caches contradict themselves.
    #[error("the cache policy is impossible: {fault}")]
    CachePolicy {
        /// What is wrong.
        fault: String,
    },
    /// A persistent binding names an input or output that the graph does not have, or one twice.
    #[error("persistent binding `{input}` <- `{output}`: {fault}")]
    Binding {
        /// The input's name in the declaration.
        input: String,
        /// The output's name in the declaration.
        output: String,
        /// What is wrong, with the names that there are.
        fault: String,
    },
    /// A node reads a value that nothing before it makes.
    #[error("node `{node}` ({op}) reads `{value}`, which no input, initializer or earlier node defines")]
    Undefined {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The value.
        value: String,
    },
    /// An initializer's payload cannot be had.
    #[error("initializer `{name}`: {fault}")]
    Initializer {
        /// Its name.
        name: String,
        /// What is wrong.
        fault: String,
    },
    /// Functions that call functions make the graph too large.
    #[error("at node `{node}` the graph has more than {limit} steps, its functions expanded")]
    TooLarge {
        /// The node.
        node: String,
        /// The most steps.
        limit: usize,
    },
    /// Functions or graphs are nested too deeply, or a function calls itself.
    #[error("{what} `{name}`: functions and bodies may be nested {limit} deep, and none may call itself")]
    Nesting {
        /// `function` or `node`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The deepest nesting.
        limit: usize,
    },
}

/// Why one node cannot be computed.
#[derive(Debug)]
pub struct NodeFault {
    /// The node's name; with the names of function calls that led to it.
    pub node: String,
    /// The operator's domain; empty for ai.onnx.
    pub domain: String,
    /// The operator.
    pub op: String,
    /// The version of the domain that the model imports; 0 where it imports none.
    pub opset: i64,
    /// What is wrong.
    pub kind: NodeFaultKind,
}

/// What is wrong with a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFaultKind {
    /// The model does not say which version of the operator's domain it means.
    #[error("the model imports no version of the operator's domain")]
    NoOpset,
    /// No kernel and no function of this name.
    #[error("no kernel of this name is registered, and the model holds no such function")]
    UnknownOperator,
    /// Kernels of this name are registered for other versions.
    #[error("kernels are registered for versions {}", ranges(.0))]
    Version(
        /// First and last version of each.
        Vec<(i64, i64)>,
    ),
    /// Kernels of this name and version are registered, and none takes these attributes and inputs.
    #[error("none of the {registered} kernels registered for this version takes its attributes and inputs{}", listed(.inputs))]
    Refused {
        /// How many were asked.
        registered: usize,
        /// The inputs that are known: name and type.
        inputs: Vec<String>,
    },
    /// MissingConsumer: an input is an encoded value, and no registered kernel takes its layout.
    #[error(
        "MissingConsumer: input {index} `{value}` is an encoded value of layout {layout}, and no registered kernel of \
         `{op}` takes it; register one, add an explicit decoder, or make the session with decode = on demand"
    )]
    MissingConsumer {
        /// The input's place.
        index: usize,
        /// The value's name.
        value: String,
        /// `affine INT4 …`, or the struct type's name and id.
        layout: String,
        /// The struct type's id, where it has one.
        type_id: Option<u64>,
        /// The operator.
        op: String,
    },
    /// An encoded value that was to be decoded cannot be.
    #[error(transparent)]
    Decode(Box<DecodeError>),
    /// The kernel that takes the node could not be made.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A control-flow node without a proper body.
    #[error("attribute `{attribute}` must be a graph with {expected} {what}, not {actual}")]
    Body {
        /// The attribute that holds the body.
        attribute: &'static str,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many there must be.
        expected: String,
        /// How many there are.
        actual: String,
    },
}

impl From<DecodeError> for NodeFaultKind {
    fn from(error: DecodeError) -> NodeFaultKind {
        NodeFaultKind::Decode(Box::new(error))
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domain = if self.domain.is_empty() { "ai.onnx" } else { &self.domain };
        write!(f, "node `{}` ({domain}.{}, version {}): {}", self.node, self.op, self.opset, self.kind)
    }
}

/// Why a call failed. Whatever the reason: a state is as it was before the call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Inputs that nobody fed.
    #[error("missing feeds for {}; the model's inputs are {}", names(.missing), names(.known))]
    MissingFeeds {
        /// All missing inputs.
        missing: Vec<String>,
        /// The inputs that a call may feed.
        known: Vec<String>,
    },
    /// Feeds for inputs that the model does not have.
    #[error("the model has no input {}; its inputs are {}", names(.unknown), names(.known))]
    UnknownFeeds {
        /// All unknown names.
        unknown: Vec<String>,
        /// The inputs that a call may feed.
        known: Vec<String>,
    },
    /// A feed for an input that the state retains.
    #[error("`{name}` is retained by the state; feed it only to `make_state` or `reset`")]
    FeedsRetained {
        /// The input.
        name: String,
    },
    /// Two feeds for one input.
    #[error("`{name}` is fed twice")]
    FedTwice {
        /// The input.
        name: String,
    },
    /// An output was wanted that the model does not have.
    #[error("the model has no output `{name}`; its outputs are {}", names(.known))]
    UnknownOutput {
        /// The name.
        name: String,
        /// The model's outputs.
        known: Vec<String>,
    },
    /// A feed does not fit the input's declaration. Nothing was computed.
    #[error("input `{name}`: {mismatch}")]
    Input {
        /// The input.
        name: String,
        /// In what way.
        mismatch: Box<Mismatch>,
    },
    /// A node failed.
    #[error("node `{node}` ({op}): {source}")]
    Node {
        /// The node's name; with the names of function calls that led to it.
        node: String,
        /// The operator.
        op: String,
        /// Why.
        source: Box<KernelError>,
    },
    /// The token stopped the call.
    #[error("the call was cancelled before or in node `{node}`; the state is as it was before")]
    Cancelled {
        /// The node that was about to run or running.
        node: String,
    },
    /// An output is a tensor that was lent for the call, or a view of one. It is not copied instead.
    #[error(
        "output `{output}` would share bytes that are lent for this call alone; feed a tensor that owns its bytes"
    )]
    Lent {
        /// The output.
        output: String,
    },
    /// A value that was to be retained does not fit the input that it is for. The state is as it was before.
    #[error("output `{output}` cannot be retained for input `{input}`: {mismatch}")]
    Retained {
        /// The output.
        output: String,
        /// The input that it is bound to.
        input: String,
        /// In what way.
        mismatch: Box<Mismatch>,
    },
    /// Another call, reset or close of the state is under way.
    #[error("the state is busy with another call; one call at a time, many states at once")]
    Busy,
    /// The state was closed.
    #[error("the state is closed")]
    Closed,
    /// The feeds override initializers, and the graph cannot be run that way.
    #[error("with the initializers overridden by feeds: {0}")]
    Rebind(
        /// Why.
        Box<SessionError>,
    ),
}

/// Why a state could not be made, reset or changed. The state is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The model declares no persistent bindings.
    #[error(
        "the model declares no persistent bindings; call `session.run`, or write bindings with `heirloom bind`"
    )]
    Stateless,
    /// Persistent inputs without an initial value.
    #[error("missing initial values for {}", names(.missing))]
    Missing {
        /// All of them.
        missing: Vec<String>,
    },
    /// Initial values for inputs that are not persistent.
    #[error("{} not persistent; the persistent inputs are {}", are(.unknown), names(.known))]
    Unknown {
        /// All unknown names.
        unknown: Vec<String>,
        /// The persistent inputs.
        known: Vec<String>,
    },
    /// Two initial values for one input.
    #[error("`{name}` has two initial values")]
    Twice {
        /// The input.
        name: String,
    },
    /// A value does not fit the input's declaration.
    #[error("initial value of `{name}`: {mismatch}")]
    Value {
        /// The input.
        name: String,
        /// In what way.
        mismatch: Box<Mismatch>,
    },
    /// A symbolic dimension has no extent.
    #[error("`{name}` needs the extent of dimension `{symbol}`; give it one")]
    Extent {
        /// The input.
        name: String,
        /// The symbol; `?` for a dimension without a name.
        symbol: String,
    },
    /// A value cannot be shortened or made of zeros.
    #[error("`{name}`: {reason}")]
    Unfit {
        /// The input.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A saved state cannot be written or read.
    #[error("saved state `{}`: {source}", path.display())]
    Snapshot {
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: Box<crate::SnapshotError>,
    },
    /// Another call, reset or close of the state is under way.
    #[error("the state is busy with another call; one call at a time, many states at once")]
    Busy,
    /// The state was closed.
    #[error("the state is closed")]
    Closed,
}

/// In what way a value differs from a declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another kind of value.
    #[error("expected a {expected}, got a {actual}")]
    Kind {
        /// The declared kind.
        expected: String,
        /// The value's kind.
        actual: String,
    },
    /// Another element type.
    #[error("expected {expected} elements, got {actual}")]
    DType {
        /// The declared type.
        expected: DType,
        /// The value's type.
        actual: DType,
    },
    /// Another rank or extent. Declared dimensions are shown as in the model, `?` where it says nothing.
    #[error("expected shape {expected}, got {actual:?}")]
    Shape {
        /// The declared shape.
        expected: String,
        /// The value's shape.
        actual: Vec<usize>,
    },
    /// A symbolic dimension has another extent in another input of the same call.
    #[error(
        "dimension {axis} is `{symbol}` = {actual}, but `{other}` of this call says `{symbol}` = {expected} (shape {shape:?})"
    )]
    Symbol {
        /// The axis.
        axis: usize,
        /// The symbol.
        symbol: String,
        /// The extent that the other input gives it.
        expected: usize,
        /// The extent here.
        actual: usize,
        /// The other input.
        other: String,
        /// The value's shape.
        shape: Vec<usize>,
    },
    /// Bytes in another layout.
    #[error("expected layout {expected}, got {actual}")]
    Layout {
        /// The declared struct type.
        expected: String,
        /// The value's layout.
        actual: String,
    },
    /// A part of the value does not fit.
    #[error("at `{path}`: {inner}")]
    Within {
        /// Field name, element number or key.
        path: String,
        /// In what way.
        inner: Box<Mismatch>,
    },
    /// The bytes are lent for a call alone.
    #[error("its bytes are lent for one call; give the state bytes that it can own or keep alive")]
    Lent,
    /// Strings have no fixed width and are never retained.
    #[error("strings cannot be retained")]
    Strings,
}

fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

fn lines(faults: &[NodeFault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}

fn ranges(versions: &[(i64, i64)]) -> String {
    let text = |&(first, last): &(i64, i64)| match last {
        i64::MAX => format!("{first} and later"),
        last if last == first => format!("{first}"),
        last => format!("{first} to {last}"),
    };
    versions.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn listed(inputs: &[String]) -> String {
    if inputs.is_empty() { String::new() } else { format!(" ({})", inputs.join(", ")) }
}

pub(crate) fn names(list: &[String]) -> String {
    if list.is_empty() {
        return "none".into();
    }
    list.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn are(list: &[String]) -> String {
    if list.len() == 1 { format!("{} is", names(list)) } else { format!("{} are", names(list)) }
}
