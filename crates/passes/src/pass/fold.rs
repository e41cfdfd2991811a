//! What follows from constants and known shapes.

use heirloom_graph::{AttrValue, NodeId};
use heirloom_infer::Elem;
use heirloom_mem::{DType, Tensor};
use heirloom_types::{Value, tensor_to_proto};
use rustc_hash::FxHashMap;

use super::PassCx;
use super::constants::is_random;
use super::edits::Edits;
use super::view::View;

pub(super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let graph = view.graph;
    let mut edits = Edits::default();
    let mut known: FxHashMap<heirloom_graph::ValueId, Value> = FxHashMap::default();
    for (id, node) in graph.ordered() {
        let plain = node.outputs.iter().flatten().all(|value| !view.named.contains(value));
        let is_local = cx.model.function(&node.domain, &node.op_type, &node.overload).is_some();
        // Within a function a constant is a node.
        let plain = plain && !(view.is_function() && node.op_type == "Constant");
        if !plain || is_random(node) || is_local || node.bodies().next().is_some() || node.outputs.is_empty()
        {
            continue;
        }
        let by_shape: Option<Vec<Value>> =
            node.outputs.iter().map(|it| it.and_then(|it| elements(view.fact(it)?))).collect();
        let values = match by_shape {
            Some(values) => Some(values),
            None => compute(cx, view, id, &known),
        };
        let Some(values): Option<Vec<Value>> = values else { continue };
        let mut made = Vec::new();
        for (value, output) in values.iter().zip(&node.outputs) {
            let Some(output) = output else { continue };
            let Value::Tensor(tensor) = value else { break };
            let Ok(proto) = tensor_to_proto(tensor, graph.value_name(*output)) else { break };
            made.push((*output, proto, value.clone()));
        }
        if made.len() != node.outputs.iter().flatten().count() {
            continue;
        }
        for (output, proto, value) in made {
            edits.make(proto);
            known.insert(output, value);
        }
        edits.remove_node(id);
    }
    edits
}

/// A tensor of integers, all of which are numbers by the shapes alone.
fn elements(fact: &heirloom_infer::Fact) -> Option<Value> {
    let tensor = fact.ty.as_ref()?.as_tensor()?;
    if tensor.dtype != DType::Int64 {
        return None;
    }
    let shape = tensor.shape_at(&|_| None)?;
    let shape: Vec<usize> = shape.into_iter().map(|it| usize::try_from(it).ok()).collect::<Option<_>>()?;
    let number = |elem: &Option<Elem>| match elem {
        Some(Elem::Int(expr)) => expr.as_number(),
        _ => None,
    };
    let numbers: Option<Vec<i64>> = fact.elems.as_ref()?.iter().map(number).collect();
    Tensor::from_vec(&shape, numbers?).ok().map(Value::Tensor)
}

fn compute(
    cx: &PassCx<'_>,
    view: &View<'_>,
    id: NodeId,
    known: &FxHashMap<heirloom_graph::ValueId, Value>,
) -> Option<Vec<Value>> {
    let node = view.graph.node(id);
    if node.attributes.iter().any(|(_, it)| matches!(it, AttrValue::Reference(_) | AttrValue::Other(_))) {
        return None;
    }
    let mut inputs = Vec::with_capacity(node.inputs.len());
    let mut given = 0usize;
    for input in &node.inputs {
        inputs.push(match input {
            None => None,
            Some(input) => {
                let value = match known.get(input) {
                    Some(value) => value.clone(),
                    // Encoded constants stay encoded: that is what they are for.
                    None => Value::Tensor(view.constant(*input)?),
                };
                given = given.saturating_add(value.payload_bytes());
                Some(value)
            }
        });
    }
    let most = cx.most_bytes.max(given);
    if node.op_type == "Constant" {
        return match node.attributes.get("value") {
            Some(AttrValue::Tensor(tensor)) => Some(vec![Value::Tensor(tensor.clone())]),
            _ => cx.evaluate?.node(node, view.version(&node.domain)?, &inputs).ok(),
        };
    }
    // Codes that are expanded, or large products, are not worth their bytes or time.
    if matches!(&*node.op_type, "DequantizeLinear") || given > (64 << 20) {
        return None;
    }
    let values = cx.evaluate?.node(node, view.version(&node.domain)?, &inputs).ok()?;
    let bytes = values.iter().map(Value::payload_bytes).fold(0usize, usize::saturating_add);
    (bytes <= most).then_some(values)
}
