//! Which kernel computes a node, and why none does.

use std::sync::Arc;

use heirloom_graph::Node;
use heirloom_types::{EncodedValue, Layout, Value};

use super::lower::Lowering;
use super::scope::plain_domain;
use crate::declared::layout_text;
use crate::{BuildCx, BuildError, Decode, InputFacts, Kernel, KernelSpec, NodeFaultKind, Prepack, PrepareCx};

/// How a node is computed.
pub(super) enum Choice {
    /// By this kernel.
    Kernel(Box<dyn Kernel>),
    /// By this kernel, after these inputs were decoded.
    Decoded { kernel: Box<dyn Kernel>, decoders: Vec<(usize, Box<dyn Kernel>)> },
}

/// What is known of a constant.
pub(crate) fn constant_facts(name: &Arc<str>, value: &Value) -> InputFacts {
    let (dtype, shape) = match value {
        Value::Tensor(tensor) => {
            (Some(tensor.dtype()), Some(heirloom_mem::Shape::from_slice(tensor.shape())))
        }
        Value::Strings(strings) => (Some(heirloom_mem::DType::String), Some(strings.shape.clone())),
        Value::Encoded(encoded) => {
            let logical = encoded.logical.as_ref();
            (logical.map(|ty| ty.dtype), logical.map(|ty| ty.shape.clone()))
        }
        _ => (None, None),
    };
    InputFacts { name: name.to_string(), constant: Some(value.clone()), dtype, shape, next: None }
}

/// What is known of an encoded constant once it is decoded.
pub(super) fn logical_facts(facts: &InputFacts) -> InputFacts {
    InputFacts { constant: None, ..facts.clone() }
}

fn encoded(facts: &Option<InputFacts>) -> Option<&Arc<EncodedValue>> {
    match facts.as_ref()?.constant.as_ref()? {
        Value::Encoded(encoded) => Some(encoded),
        _ => None,
    }
}

/// The kernel for a node whose domain is imported in version `opset`.
pub(super) fn kernel(
    lowering: &mut Lowering<'_>,
    node: &Node,
    opset: i64,
    facts: &[Option<InputFacts>],
) -> Result<Choice, NodeFaultKind> {
    let registry = lowering.registry;
    let cx = BuildCx { node, opset, inputs: facts };
    if let Some(spec) = registry.choose(&cx) {
        return Ok(Choice::Kernel(build(spec, &cx, &lowering.options.prepack)?));
    }
    // Within a decoder of the file no other one runs.
    if node.domain == "ai.heirloom"
        && node.op_type == "Decode"
        && lowering.model.is_some()
        && let [fact] = facts
        && let Some(value) = encoded(fact)
    {
        return Ok(Choice::Kernel(lowering.decoder(value)?));
    }
    let domain = plain_domain(&node.domain);
    let versions: Vec<_> = registry.of(domain, &node.op_type).map(|spec| spec.versions).collect();
    if versions.is_empty() {
        return Err(NodeFaultKind::UnknownOperator);
    }
    let registered = versions.iter().filter(|(first, last)| (*first..=*last).contains(&opset)).count();
    if registered == 0 {
        return Err(NodeFaultKind::Version(versions));
    }
    let Some((index, value)) = facts.iter().enumerate().find_map(|(at, f)| Some((at, encoded(f)?))) else {
        return Err(NodeFaultKind::Refused { registered, inputs: describe(facts) });
    };
    if lowering.options.decode == Decode::OnDemand
        && let Some(choice) = decoded(lowering, node, opset, facts)?
    {
        return Ok(choice);
    }
    Err(missing_consumer(node, index, facts, value))
}

/// The kernel that takes the node once its encoded inputs are decoded, and what decodes them.
fn decoded(
    lowering: &mut Lowering<'_>,
    node: &Node,
    opset: i64,
    facts: &[Option<InputFacts>],
) -> Result<Option<Choice>, NodeFaultKind> {
    let mut decoders = Vec::new();
    let mut plain = facts.to_owned();
    for (index, fact) in plain.iter_mut().enumerate() {
        let Some(value) = encoded(fact).cloned() else { continue };
        decoders.push((index, lowering.decoder(&value)?));
        if let Some(fact) = fact {
            fact.constant = None;
        }
    }
    let cx = BuildCx { node, opset, inputs: &plain };
    let Some(spec) = lowering.registry.choose(&cx) else { return Ok(None) };
    Ok(Some(Choice::Decoded { kernel: build(spec, &cx, &lowering.options.prepack)?, decoders }))
}

/// A kernel, with what it claims of the session's store.
pub(crate) fn build(
    spec: &KernelSpec,
    cx: &BuildCx<'_>,
    prepack: &Prepack,
) -> Result<Box<dyn Kernel>, BuildError> {
    let mut kernel = (spec.build)(cx)?;
    if let Prepack::On(store) = prepack {
        kernel.prepare(&PrepareCx { inputs: cx.inputs, store });
    }
    Ok(kernel)
}

fn missing_consumer(
    node: &Node,
    index: usize,
    facts: &[Option<InputFacts>],
    value: &EncodedValue,
) -> NodeFaultKind {
    let type_id = match &value.layout {
        Layout::Struct(layout) => layout.type_id.map(std::num::NonZeroU64::get),
        Layout::Affine(_) => None,
    };
    NodeFaultKind::MissingConsumer {
        index,
        value: facts[index].as_ref().map_or_else(String::new, |fact| fact.name.clone()),
        layout: layout_text(&value.layout),
        type_id,
        op: node.op_type.clone(),
    }
}

fn describe(facts: &[Option<InputFacts>]) -> Vec<String> {
    let text = |fact: &InputFacts| {
        let dtype = fact.dtype.map_or_else(|| "unknown type".into(), |dtype| dtype.to_string());
        let shape = fact.shape.as_ref().map_or_else(String::new, |shape| format!("{:?}", &shape[..]));
        let constant = match &fact.constant {
            Some(Value::Encoded(encoded)) => format!(" in layout {}", layout_text(&encoded.layout)),
            Some(_) => " constant".into(),
            None => String::new(),
        };
        format!("`{}`: {dtype}{shape}{constant}", fact.name)
    };
    facts.iter().map(|fact| fact.as_ref().map_or_else(|| "absent".into(), text)).collect()
}
