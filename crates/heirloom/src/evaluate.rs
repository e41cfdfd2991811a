//! Kernels for rewriting.

use std::sync::Arc;

use heirloom_graph::{AttrValue, Node};
use heirloom_mem::Tensor;
use heirloom_passes::Evaluate;
use heirloom_runtime::{NodeCall, NodeInput};
use heirloom_types::{EncodedValue, Value};

use crate::Engine;

impl Evaluate for Engine {
    fn node(&self, node: &Node, opset: i64, inputs: &[Option<Value>]) -> Result<Vec<Value>, String> {
        if node.attributes.iter().any(|(_, it)| matches!(it, AttrValue::Reference(_))) {
            return Err("an attribute is the call's".into());
        }
        let op = match &*node.domain {
            "" | "ai.onnx" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        let given =
            inputs.iter().map(|it| it.clone().map_or(NodeInput::Absent, NodeInput::Constant)).collect();
        let call =
            NodeCall::new(self.registry(), &op, opset, node.attributes.clone(), given, node.outputs.len());
        let mut call = call.map_err(|error| error.to_string())?;
        call.run(std::iter::empty::<Value>()).map_err(|error| error.to_string())
    }

    fn decode(&self, value: &Arc<EncodedValue>) -> Result<Tensor, String> {
        Engine::decode(self, value).map(|(tensor, _)| tensor).map_err(|error| error.to_string())
    }
}
