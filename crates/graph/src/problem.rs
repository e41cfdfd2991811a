//! What can be wrong with a model.

use heirloom_types::{TensorError, TypeError};

/// What is wrong with a part of a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A model without a graph.
    #[error("the model has no graph")]
    NoGraph,
    /// A type, a layout or an encoded value.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The data of a tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A constant of a kind that no initializer holds.
    #[error("a {actual} is no initializer; tensors and encoded values are")]
    ConstantKind {
        /// The kind.
        actual: &'static str,
    },
    /// Where a payload lies.
    #[error("`{name}`: {reason}")]
    External {
        /// The tensor or encoded value.
        name: String,
        /// Which rule is broken, or what the system says.
        reason: String,
    },
    /// A name is missing.
    #[error("the {what} has no name")]
    NoName {
        /// What lacks it.
        what: &'static str,
    },
    /// A node without operator.
    #[error("the node has no operator (`op_type`)")]
    NoOperator,
    /// Two of a kind have the same name.
    #[error("the {what} name `{name}` occurs twice; {first} has it already")]
    Duplicate {
        /// What has it.
        what: &'static str,
        /// The name.
        name: String,
        /// Where it occurs first.
        first: String,
    },
    /// A value is made twice.
    #[error("`{name}` is defined twice: {first} makes it already; each value is made once")]
    Redefined {
        /// The value.
        name: String,
        /// Where it is defined first.
        first: String,
    },
    /// A value is read that nothing makes.
    #[error("`{name}` is made by no input, initializer or node{}", hint(similar))]
    Undefined {
        /// The value.
        name: String,
        /// Values that exist and have a similar name.
        similar: Vec<String>,
    },
    /// An initializer contradicts the type that its input or value declares.
    #[error("`{name}` is declared as {declared}; its initializer is {actual}")]
    InitializerType {
        /// The value.
        name: String,
        /// The declared type.
        declared: String,
        /// The initializer's type.
        actual: String,
    },
    /// Two types of one value.
    #[error("`{name}` is declared as {declared}, and as {actual}")]
    TypeConflict {
        /// The value.
        name: String,
        /// The first type.
        declared: String,
        /// The other.
        actual: String,
    },
    /// The main graph's inputs and outputs need types.
    #[error("the graph's {what} `{name}` has no type")]
    NoType {
        /// `input` or `output`.
        what: &'static str,
        /// The value.
        name: String,
    },
    /// Nodes need each other's outputs.
    #[error("nodes need each other's outputs: {}", nodes.join(" → "))]
    Cycle {
        /// The nodes; each needs the next, the last needs the first.
        nodes: Vec<String>,
    },
    /// A node stands before one whose output it reads.
    #[error("{node} reads `{value}`, which {producer} makes further down: ONNX asks that nodes are sorted")]
    Unsorted {
        /// The node that stands too early.
        node: String,
        /// The value.
        value: String,
        /// The node that makes it.
        producer: String,
    },
    /// A sparse tensor whose parts do not fit each other.
    #[error("the sparse tensor is malformed: {reason}")]
    Sparse {
        /// What does not fit.
        reason: String,
    },
    /// An attribute holds no value, or not the one that its type says.
    #[error("attribute `{name}` {reason}")]
    Attribute {
        /// The attribute.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A reference to an attribute of the calling function, outside of any function or to one that it lacks.
    #[error("attribute `{name}` refers to the attribute `{to}` of a function{}", reference(within))]
    AttributeReference {
        /// The attribute.
        name: String,
        /// What it refers to.
        to: String,
        /// The function around it; `None` outside of functions.
        within: Option<String>,
    },
    /// An operator of a domain that is not imported.
    #[error(
        "operator `{op}` is of domain `{domain}`, which `opset_import` does not name{}",
        names("domains", domains)
    )]
    NoOpset {
        /// The operator.
        op: String,
        /// Its domain.
        domain: String,
        /// The imported domains.
        domains: Vec<String>,
    },
    /// A version of an operator set that cannot be.
    #[error("opset version {version} of domain `{domain}` does not exist")]
    OpsetVersion {
        /// The domain.
        domain: String,
        /// The version.
        version: i64,
    },
    /// A binding names no input.
    #[error("binding {input} <- {output}: the graph has no input `{input}`{}", names("inputs", inputs))]
    BindingInput {
        /// The input that is named.
        input: String,
        /// The output that is named.
        output: String,
        /// The graph's inputs.
        inputs: Vec<String>,
    },
    /// A binding names no output.
    #[error("binding {input} <- {output}: the graph has no output `{output}`{}", names("outputs", outputs))]
    BindingOutput {
        /// The input that is named.
        input: String,
        /// The output that is named.
        output: String,
        /// The graph's outputs.
        outputs: Vec<String>,
    },
    /// A binding's input or output is in another binding too.
    #[error("binding {input} <- {output}: the {what} is in the binding {first} already")]
    BindingTwice {
        /// The input.
        input: String,
        /// The output.
        output: String,
        /// Which of the two is bound already: `input` or `output`.
        what: &'static str,
        /// The binding that has it.
        first: String,
    },
    /// A binding's values can never have the same type.
    #[error(
        "binding {input} <- {output}: the input is {input_type}, the output {output_type}; {reason}, so that the \
         output can never be the next input"
    )]
    BindingTypes {
        /// The input.
        input: String,
        /// The output.
        output: String,
        /// The input's type.
        input_type: Box<str>,
        /// The output's type.
        output_type: Box<str>,
        /// Where they differ.
        reason: Box<str>,
    },
    /// Strings cannot be retained.
    #[error(
        "binding {input} <- {output}: `{value}` is {ty}, which holds strings; strings cannot be kept between calls"
    )]
    BindingStrings {
        /// The input.
        input: String,
        /// The output.
        output: String,
        /// Which of the two.
        value: String,
        /// Its type.
        ty: String,
    },
    /// A binding's value has a type that has no values in a session.
    #[error("binding {input} <- {output}: `{value}` is {ty}, which cannot be kept between calls")]
    BindingKind {
        /// The input.
        input: String,
        /// The output.
        output: String,
        /// Which of the two.
        value: String,
        /// Its type.
        ty: String,
    },
    /// A binding in the body of an operator.
    #[error(
        "binding {input} <- {output}: bindings belong to the model's main graph; a body's state is passed through \
         its inputs and outputs"
    )]
    BindingInBody {
        /// The input.
        input: String,
        /// The output.
        output: String,
    },
    /// Something is removed that a binding needs.
    #[error(
        "`{name}` is bound ({binding}): remove the binding in the same edit, or bind another value first"
    )]
    Bound {
        /// The input or output.
        name: String,
        /// The binding.
        binding: String,
    },
    /// A new name is taken.
    #[error("`{name}` is taken already, by {by}")]
    Taken {
        /// The name.
        name: String,
        /// What has it.
        by: String,
    },
    /// A decoder or encoder calls one of the model's functions, which a declaration cannot rely on.
    #[error("the codec's node `{op}` calls the model's function of domain `{domain}`; a codec stands alone")]
    CodecCalls {
        /// The function.
        op: String,
        /// Its domain.
        domain: String,
    },
    /// A codec has other inputs or outputs than it must have.
    #[error("a codec has one input and one output; this one has {inputs} and {outputs}")]
    CodecSignature {
        /// Its inputs.
        inputs: usize,
        /// Its outputs.
        outputs: usize,
    },
    /// Functions call each other in a circle.
    #[error("functions call each other: {}", functions.join(" → "))]
    Recursion {
        /// The functions; each calls the next, the last calls the first.
        functions: Vec<String>,
    },
    /// A function's call has more inputs or outputs than the function.
    #[error("function `{function}` has {expected} {what}, the call {actual}")]
    CallSize {
        /// The function.
        function: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many it has.
        expected: usize,
        /// How many the call has.
        actual: usize,
    },
    /// A payload has another length than its type takes.
    #[error("{what} takes {expected} bytes; {actual} were given")]
    Length {
        /// The type.
        what: String,
        /// The bytes it takes.
        expected: u64,
        /// The bytes given.
        actual: u64,
    },
    /// A value was handed to a graph that does not know it.
    #[error("`{name}` belongs to another graph; here it is neither defined nor visible")]
    Foreign {
        /// The value.
        name: String,
    },
    /// More faults than are worth listing.
    #[error("there are more than {limit} faults; the rest is not listed")]
    More {
        /// How many were listed.
        limit: usize,
    },
}

impl Problem {
    /// A short, stable word for the kind of problem, for machine-readable reports.
    pub fn code(&self) -> &'static str {
        match self {
            Problem::NoGraph => "no-graph",
            Problem::Type(_) => "type",
            Problem::Tensor(_) => "tensor",
            Problem::ConstantKind { .. } => "constant-kind",
            Problem::External { .. } => "external",
            Problem::NoName { .. } => "no-name",
            Problem::NoOperator => "no-operator",
            Problem::Duplicate { .. } => "duplicate",
            Problem::Redefined { .. } => "redefined",
            Problem::Undefined { .. } => "undefined",
            Problem::InitializerType { .. } => "initializer-type",
            Problem::TypeConflict { .. } => "type-conflict",
            Problem::NoType { .. } => "no-type",
            Problem::Cycle { .. } => "cycle",
            Problem::Unsorted { .. } => "unsorted",
            Problem::Sparse { .. } => "sparse",
            Problem::Attribute { .. } => "attribute",
            Problem::AttributeReference { .. } => "attribute-reference",
            Problem::NoOpset { .. } => "no-opset",
            Problem::OpsetVersion { .. } => "opset-version",
            Problem::BindingInput { .. } => "binding-input",
            Problem::BindingOutput { .. } => "binding-output",
            Problem::BindingTwice { .. } => "binding-twice",
            Problem::BindingTypes { .. } => "binding-types",
            Problem::BindingStrings { .. } => "binding-strings",
            Problem::BindingKind { .. } => "binding-kind",
            Problem::BindingInBody { .. } => "binding-in-body",
            Problem::Bound { .. } => "bound",
            Problem::Taken { .. } => "taken",
            Problem::CodecCalls { .. } => "codec-calls",
            Problem::CodecSignature { .. } => "codec-signature",
            Problem::Recursion { .. } => "recursion",
            Problem::CallSize { .. } => "call-size",
            Problem::Length { .. } => "length",
            Problem::Foreign { .. } => "foreign",
            Problem::More { .. } => "more",
        }
    }
}

fn hint(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; did you mean {}?", quoted(names)),
    }
}

/// Lists the real names, a long list cut short.
fn names(what: &str, names: &[String]) -> String {
    const SHOWN: usize = 32;
    match names {
        [] => format!("; it has no {what}"),
        names if names.len() <= SHOWN => format!("; its {what}: {}", quoted(names)),
        names => format!("; its {what}: {} and {} more", quoted(&names[..SHOWN]), names.len() - SHOWN),
    }
}

fn reference(within: &Option<String>) -> String {
    match within {
        None => " and stands outside of any function".into(),
        Some(function) => format!("; `{function}` has no such attribute"),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
