//! Encoded values to dense tensors, when somebody asks for it.

use std::sync::{Arc, OnceLock};

use heirloom_graph::{Attributes, Node, ValueId};
use heirloom_types::{EncodedValue, Value};

use crate::{BuildCx, InputFacts, Kernel, KernelError, KernelRegistry, RunCx, SessionOptions};

/// A kernel that decodes the constant `value` once and keeps the tensor: by a registered codec, else by the decoder of
/// the file. `None` where there is neither.
pub(crate) fn on_demand(
    registry: &KernelRegistry,
    value: &Arc<EncodedValue>,
    _options: &SessionOptions,
) -> Option<Box<dyn Kernel>> {
    let decoder = registered(registry, value)?;
    Some(Box::new(Once { decoder, decoded: OnceLock::new() }))
}

/// The kernel of `ai.heirloom.Decode` that is registered for the layout.
fn registered(registry: &KernelRegistry, value: &Arc<EncodedValue>) -> Option<Box<dyn Kernel>> {
    let logical = value.logical.as_ref();
    let facts = InputFacts {
        name: value.name.clone(),
        constant: Some(Value::Encoded(value.clone())),
        dtype: logical.map(|ty| ty.dtype),
        shape: logical.map(|ty| ty.shape.clone()),
        next: None,
    };
    let node = Node {
        name: String::new(),
        op_type: "Decode".into(),
        domain: "ai.heirloom".into(),
        overload: String::new(),
        inputs: vec![Some(ValueId(0))],
        outputs: vec![Some(ValueId(1))],
        attributes: Attributes::default(),
    };
    let cx = BuildCx { node: &node, opset: 1, inputs: &[Some(facts)] };
    (registry.choose(&cx)?.build)(&cx).ok()
}

/// Decodes at the first call that needs the value.
struct Once {
    decoder: Box<dyn Kernel>,
    decoded: OnceLock<Value>,
}

impl Kernel for Once {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if let Some(value) = self.decoded.get() {
            cx.set(0, value.clone());
            return Ok(());
        }
        self.decoder.run(cx)?;
        if let Some(value) = &cx.outputs[0] {
            // Two calls may decode at the same time; the first one's tensor stays.
            let _ = self.decoded.set(value.clone());
        }
        Ok(())
    }
}
