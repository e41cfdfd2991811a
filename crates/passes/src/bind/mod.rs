//! Which outputs of a model are inputs of its next call.
//!
//! Models that carry state say so in no standard way: names follow no rule, and input and output may differ in declared
//! shape. A pair is found by evidence of two kinds: names that differ only in words such as `past` and `present`, and nodes
//! that take the one as their old state and give the other as the new one. Types must be able to agree. What has two
//! equally good partners, or evidence against it, is not bound but told.

mod names;
mod ports;

use std::fmt;

use heirloom_graph::{AttrValue, Graph, Model, ValueId};
use heirloom_infer::{Scope, ShapesContext, Type};

use ports::Ports;

/// An input and the output that looks like its next value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The input.
    pub input: String,
    /// The output.
    pub output: String,
    /// What speaks for the pair.
    pub reasons: Vec<Reason>,
}

/// What speaks for a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The names differ only in words for old and new.
    Names {
        /// What they have in common.
        common: String,
    },
    /// A node takes the input as its old state and gives the output as its new one.
    Node {
        /// The node, and its operator.
        node: String,
    },
    /// Both have the same type.
    SameType {
        /// The type.
        ty: String,
    },
    /// The output is longer along one axis.
    Grows {
        /// The axis.
        axis: usize,
        /// The extent of the input.
        from: String,
        /// The extent of the output.
        to: String,
    },
}

/// An input or output that looks like state and has no partner that is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The input, or the output where no input is its partner.
    pub value: String,
    /// Why it is not bound.
    pub reason: RefusedReason,
}

/// Why a value is not bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedReason {
    /// Several partners are equally likely.
    Ambiguous {
        /// They.
        partners: Vec<String>,
    },
    /// Its name says that it is state, and no other value fits.
    Alone,
    /// A branch of the model gives the output empty: the value of an earlier call is to be kept.
    Emptied {
        /// The output.
        output: String,
        /// Its type in that branch.
        ty: String,
    },
    /// Names say that the two belong together and types forbid it.
    Types {
        /// The output.
        output: String,
        /// Why.
        reason: String,
    },
}

/// What was found in a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Pairs that are certain, in the order of the inputs.
    pub pairs: Vec<Pair>,
    /// What looks like state and is not certain.
    pub refused: Vec<Refused>,
    /// Pairs that the model declares already, as input and output.
    pub declared: Vec<(String, String)>,
}

/// Two values that may be a pair, with what speaks for it.
struct Candidate {
    input: ValueId,
    output: ValueId,
    score: u32,
    reasons: Vec<Reason>,
}

/// Looks for pairs of inputs and outputs that are state. Values that are bound already are left aside.
pub fn find(model: &Model, shapes: &ShapesContext) -> Found {
    let graph = model.graph();
    let scope = shapes.main();
    let mut found = Found::default();
    for binding in graph.bindings() {
        let name = |value| String::from(graph.value_name(value));
        found.declared.push((name(binding.input), name(binding.output)));
    }
    let is_bound =
        |value: &ValueId| graph.bindings().iter().any(|it| it.input == *value || it.output == *value);
    let inputs: Vec<ValueId> = graph.required_inputs().filter(|it| !is_bound(it)).collect();
    let outputs: Vec<ValueId> = graph.outputs().iter().copied().filter(|it| !is_bound(it)).collect();
    let ports = Ports::new(model);
    let (from, to): (Vec<_>, Vec<_>) = (
        inputs.iter().map(|&input| ports.forward(graph, input)).collect(),
        outputs.iter().map(|&output| ports.backward(graph, output)).collect(),
    );
    let mut candidates = Vec::new();
    for (input, from) in inputs.iter().zip(&from) {
        for (output, to) in outputs.iter().zip(&to) {
            let node = from.iter().find(|port| to.contains(port)).map(|port| port.node.clone());
            consider(graph, scope, (*input, *output), node, &mut candidates, &mut found.refused);
        }
    }
    choose(graph, &inputs, &outputs, candidates, &mut found);
    found
}

fn consider(
    graph: &Graph,
    scope: &Scope,
    (input, output): (ValueId, ValueId),
    node: Option<String>,
    candidates: &mut Vec<Candidate>,
    refused: &mut Vec<Refused>,
) {
    let (from, to) = (graph.value_name(input), graph.value_name(output));
    let common = names::common(from, to);
    // Two words for in and out alone are no state: `audio_in` and `audio_out` are not.
    let by_name = common.as_ref().filter(|common| common.is_state);
    if by_name.is_none() && node.is_none() {
        return;
    }
    let refuse = |reason| Refused { value: from.into(), reason };
    let mut reasons = Vec::new();
    match types(graph, scope, input, output) {
        Err(reason) => {
            if by_name.is_some() {
                refused.push(refuse(RefusedReason::Types { output: to.into(), reason }));
            }
            return;
        }
        Ok(reason) => reasons.extend(reason),
    }
    if let Some(ty) = emptied(graph, scope, output) {
        if by_name.is_some() {
            refused.push(refuse(RefusedReason::Emptied { output: to.into(), ty }));
        }
        return;
    }
    let score = u32::from(node.is_some()) * 4 + by_name.map_or(0, |_| 3) + u32::from(!reasons.is_empty());
    if let Some(node) = node {
        reasons.insert(0, Reason::Node { node });
    }
    if let Some(common) = by_name {
        reasons.insert(0, Reason::Names { common: common.words.clone() });
    }
    candidates.push(Candidate { input, output, score, reasons });
}

/// Whether a value of the output's type can be one of the input's, and what both types say for the pair.
fn types(graph: &Graph, scope: &Scope, input: ValueId, output: ValueId) -> Result<Option<Reason>, String> {
    let ty = |value: ValueId| scope.fact(value).ty.clone();
    let (Some(a), Some(b)) = (ty(input), ty(output)) else { return Ok(None) };
    let problems = heirloom_graph::binding_problems(
        graph.value_name(input),
        graph.value_name(output),
        graph.value_type(input),
        graph.value_type(output),
    );
    if let Some(problem) = problems.first() {
        return Err(problem.to_string());
    }
    let (Type::Tensor(x), Type::Tensor(y)) = (&a, &b) else {
        return if a == b { Ok(Some(Reason::SameType { ty: a.to_string() })) } else { Ok(None) };
    };
    if x.dtype != y.dtype {
        return Err(format!("{a} and {b}"));
    }
    let (Some(from), Some(to)) = (&x.dims, &y.dims) else { return Ok(None) };
    if from.len() != to.len() {
        return Err(format!("{a} and {b}"));
    }
    let mut grown = None;
    for (axis, (from, to)) in from.iter().zip(to).enumerate() {
        let (Some(from), Some(to)) = (from, to) else { continue };
        if !from.differs(to) {
            let is_longer =
                from != to && to.minus(from).and_then(|it| it.least()).is_some_and(|least| least >= 0);
            if is_longer && grown.is_none() {
                grown = Some(Reason::Grows { axis, from: from.to_string(), to: to.to_string() });
            }
            continue;
        }
        // Where the input's extent is free, the next call may have another one: a cache grows.
        if from.as_symbol().is_none() || grown.is_some() {
            return Err(format!("{a} and {b}"));
        }
        grown = Some(Reason::Grows { axis, from: from.to_string(), to: to.to_string() });
    }
    Ok(grown.or_else(|| (a == b).then(|| Reason::SameType { ty: a.to_string() })))
}

/// The type of an output in a branch that gives it with no element.
fn emptied(graph: &Graph, scope: &Scope, output: ValueId) -> Option<String> {
    let producer = graph.producer(output)?;
    let node = graph.node(producer);
    let at = node.outputs.iter().position(|it| *it == Some(output))?;
    node.attributes.iter().find_map(|(name, value)| {
        let AttrValue::Graph(body) = value else { return None };
        let fact = scope.body(producer, name)?.fact(*body.outputs().get(at)?);
        let ty = fact.ty.as_ref()?;
        let is_empty = ty.as_tensor()?.dims.as_ref()?.iter().flatten().any(|dim| dim.is(0));
        is_empty.then(|| ty.to_string())
    })
}

/// The best partner of each input, if it is the only best one and has no better partner itself.
fn choose(
    graph: &Graph,
    inputs: &[ValueId],
    outputs: &[ValueId],
    candidates: Vec<Candidate>,
    found: &mut Found,
) {
    let name = |value: ValueId| String::from(graph.value_name(value));
    let best = |of: &dyn Fn(&Candidate) -> bool| {
        let top = candidates.iter().filter(|it| of(it)).map(|it| it.score).max().unwrap_or(0);
        candidates.iter().filter(|it| of(it) && it.score == top).collect::<Vec<_>>()
    };
    let mut taken = Vec::new();
    for &input in inputs {
        let partners = best(&|it| it.input == input);
        match partners[..] {
            [] => {}
            [one] => {
                let rivals = best(&|it| it.output == one.output);
                if rivals.len() == 1 && rivals[0].input == input {
                    taken.push(one.output);
                    let reasons = one.reasons.clone();
                    found.pairs.push(Pair { input: name(input), output: name(one.output), reasons });
                } else {
                    let partners = rivals.iter().map(|it| name(it.input)).collect();
                    let reason = RefusedReason::Ambiguous { partners };
                    found.refused.push(Refused { value: name(one.output), reason });
                }
            }
            _ => {
                let partners = partners.iter().map(|it| name(it.output)).collect();
                found
                    .refused
                    .push(Refused { value: name(input), reason: RefusedReason::Ambiguous { partners } });
            }
        }
    }
    // A refusal for a value that found its partner elsewhere says nothing.
    let paired = |value: &str| found.pairs.iter().any(|pair| pair.input == value || pair.output == value);
    found.refused.retain(|it| !paired(&it.value));
    found.refused.dedup();
    let told = |value: &str| found.refused.iter().any(|it| it.value == value || it.mentions(value));
    let sides = inputs.iter().map(|it| (it, true)).chain(outputs.iter().map(|it| (it, false)));
    let alone: Vec<Refused> = sides
        .map(|(&value, is_input)| (name(value), is_input))
        .filter(|(value, is_input)| names::says_state(value, *is_input) && !paired(value) && !told(value))
        .map(|(value, _)| Refused { value, reason: RefusedReason::Alone })
        .collect();
    found.refused.extend(alone);
}

impl Refused {
    fn mentions(&self, value: &str) -> bool {
        match &self.reason {
            RefusedReason::Ambiguous { partners } => partners.iter().any(|it| it == value),
            RefusedReason::Emptied { output, .. } | RefusedReason::Types { output, .. } => output == value,
            RefusedReason::Alone => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Names { common } => write!(f, "both names are about `{common}`"),
            Reason::Node { node } => write!(f, "{node} takes the one and gives the other as its state"),
            Reason::SameType { ty } => write!(f, "both are {ty}"),
            Reason::Grows { axis, from, to } => write!(f, "axis {axis} grows from {from} to {to}"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = &self.value;
        match &self.reason {
            RefusedReason::Ambiguous { partners } => {
                let partners = partners.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
                write!(f, "`{value}` could be paired with each of {partners}")
            }
            RefusedReason::Alone => write!(f, "`{value}` is named like state, and nothing fits it"),
            RefusedReason::Emptied { output, ty } => write!(
                f,
                "`{value}` and `{output}`: a branch gives {ty}, so the value of an earlier call is to be kept"
            ),
            RefusedReason::Types { output, reason } => write!(f, "`{value}` and `{output}`: {reason}"),
        }
    }
}
