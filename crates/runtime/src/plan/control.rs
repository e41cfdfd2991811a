//! `If`, `Loop`, `Scan` and `SequenceMap` to steps that hold blocks.

use heirloom_graph::{Graph, Node};
use heirloom_types::{TensorSpec, ValueType};
use smallvec::SmallVec;

use super::lower::Lowering;
use super::scope::Scope;
use super::{LBlock, Label, ScanSpec, StackType, Work};
use crate::{BuildError, NodeFaultKind, SessionError};

fn stack_types(graph: &Graph, skip: usize) -> Vec<StackType> {
    let stack_type = |spec: &TensorSpec| StackType {
        dtype: Some(spec.dtype),
        shape: spec.dims.iter().flatten().map(|dim| dim.known().unwrap_or(0)).collect(),
    };
    let outputs = graph.outputs().iter().skip(skip);
    outputs
        .map(|&output| {
            let spec = graph.value_type(output).and_then(ValueType::as_tensor);
            spec.map(stack_type).unwrap_or_default()
        })
        .collect()
}

fn count(
    attribute: &'static str,
    what: &'static str,
    expected: usize,
    graph: &Graph,
) -> Result<(), NodeFaultKind> {
    let actual = if what == "inputs" { graph.inputs().len() } else { graph.outputs().len() };
    if actual == expected {
        return Ok(());
    }
    Err(NodeFaultKind::Body { attribute, what, expected: expected.to_string(), actual: actual.to_string() })
}

fn at_least(attribute: &'static str, expected: usize, graph: &Graph) -> Result<(), NodeFaultKind> {
    let actual = graph.outputs().len();
    if actual >= expected {
        return Ok(());
    }
    let expected = format!("{expected} or more");
    Err(NodeFaultKind::Body { attribute, what: "outputs", expected, actual: actual.to_string() })
}

fn unsupported(name: &str, value: impl ToString, reason: &str) -> NodeFaultKind {
    NodeFaultKind::Build(BuildError::Unsupported {
        name: name.into(),
        value: value.to_string(),
        reason: reason.into(),
    })
}

impl Lowering<'_> {
    /// The work of a control-flow node; `None` where a fault was noted.
    pub(super) fn control(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        label: &Label,
    ) -> Result<Option<Work<LBlock>>, SessionError> {
        let checked = match &*node.op_type {
            "If" => check_if(node),
            "Loop" => check_loop(node),
            "Scan" => check_scan(node, scope.opset("")),
            _ => check_map(node),
        };
        let shape = match checked {
            Ok(shape) => shape,
            Err(kind) => {
                let opset = scope.opset("");
                self.fault(node, label, opset, kind);
                return Ok(None);
            }
        };
        Ok(Some(match shape {
            Shape::If(then, otherwise) => Work::If {
                then: self.body(scope, label, then, &node.outputs)?,
                otherwise: self.body(scope, label, otherwise, &node.outputs)?,
            },
            Shape::Loop(body, carried) => Work::Loop {
                body: self.body(scope, label, body, &[])?,
                carried,
                stacked: stack_types(body, 1 + carried),
            },
            Shape::Scan(body, spec) => {
                let stacked = stack_types(body, spec.carried);
                Work::Scan { body: self.body(scope, label, body, &[])?, spec, stacked }
            }
            Shape::Map(body) => Work::SequenceMap { body: self.body(scope, label, body, &[])? },
        }))
    }
}

/// A checked control-flow node.
enum Shape<'n> {
    If(&'n Graph, &'n Graph),
    Loop(&'n Graph, usize),
    Scan(&'n Graph, ScanSpec),
    Map(&'n Graph),
}

fn check_if(node: &Node) -> Result<Shape<'_>, NodeFaultKind> {
    let then = node.attributes.graph("then_branch").map_err(BuildError::from)?;
    let otherwise = node.attributes.graph("else_branch").map_err(BuildError::from)?;
    count("then_branch", "inputs", 0, then)?;
    count("else_branch", "inputs", 0, otherwise)?;
    at_least("then_branch", node.outputs.len(), then)?;
    at_least("else_branch", node.outputs.len(), otherwise)?;
    Ok(Shape::If(then, otherwise))
}

fn check_loop(node: &Node) -> Result<Shape<'_>, NodeFaultKind> {
    let body = node.attributes.graph("body").map_err(BuildError::from)?;
    let carried = node.inputs.len().saturating_sub(2);
    count("body", "inputs", 2 + carried, body)?;
    at_least("body", 1 + carried.max(node.outputs.len()), body)?;
    Ok(Shape::Loop(body, carried))
}

fn check_map(node: &Node) -> Result<Shape<'_>, NodeFaultKind> {
    let body = node.attributes.graph("body").map_err(BuildError::from)?;
    count("body", "inputs", node.inputs.len(), body)?;
    at_least("body", node.outputs.len(), body)?;
    Ok(Shape::Map(body))
}

fn check_scan(node: &Node, opset: Option<i64>) -> Result<Shape<'_>, NodeFaultKind> {
    let batched = opset.is_some_and(|version| version < 9);
    let attributes = &node.attributes;
    let body = attributes.graph("body").map_err(BuildError::from)?;
    // Version 8 has the lengths of the samples in front of its inputs.
    let inputs = if batched { node.inputs.get(1..).unwrap_or_default() } else { &node.inputs };
    if batched && node.inputs.first().is_some_and(Option::is_some) {
        let name = "sequence_lens";
        return Err(unsupported(name, "an input", "samples of different lengths are not scanned"));
    }
    let scanned = attributes.int("num_scan_inputs").map_err(BuildError::from)?;
    let scanned =
        usize::try_from(scanned).ok().filter(|&n| n >= 1 && n <= inputs.len()).ok_or_else(|| {
            unsupported("num_scan_inputs", scanned, "it must lie between 1 and the number of inputs")
        })?;
    let carried = inputs.len() - scanned;
    count("body", "inputs", inputs.len(), body)?;
    at_least("body", carried.max(node.outputs.len()), body)?;
    let stacked = body.outputs().len() - carried;
    let list = |name: &str, len: usize| -> Result<SmallVec<[i64; 2]>, NodeFaultKind> {
        match attributes.opt_ints(name).map_err(BuildError::from)? {
            None => Ok(SmallVec::from_elem(0, len)),
            Some(list) if list.len() == len => Ok(list.iter().copied().collect()),
            Some(list) => Err(unsupported(name, list.len(), "it must have one entry for each scanned value")),
        }
    };
    let reverse = |list: SmallVec<[i64; 2]>| list.into_iter().map(|direction| direction == 1).collect();
    let directions = if batched { "directions" } else { "scan_input_directions" };
    let spec = ScanSpec {
        batched,
        carried,
        input_axes: list("scan_input_axes", scanned)?,
        input_reverse: reverse(list(directions, scanned)?),
        output_axes: list("scan_output_axes", stacked)?,
        output_reverse: reverse(list("scan_output_directions", stacked)?),
    };
    Ok(Shape::Scan(body, spec))
}
