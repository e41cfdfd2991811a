//! From a graph to steps over registers: functions expanded, constants collected, kernels chosen.

use std::sync::Arc;

use heirloom_graph::{Attributes, Function, Graph, Model, Node, ValueId};
use heirloom_types::{EncodedValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::choose::{self, Choice};
use super::scope::{Call, Opsets, Scope, facts, needed, plain_domain};
use super::{Constant, LBlock, LStep, Label, Operand, Plan, Reg, Work, constant, slots};
use crate::decode::OnDemand;
use crate::signature::Signature;
use crate::{
    DecodeError, InputFacts, Kernel, KernelRegistry, NodeFault, NodeFaultKind, SessionError, SessionOptions,
};

/// How deep functions and bodies may nest.
pub(crate) const DEPTH: usize = 64;
/// The most steps of a plan: functions that call functions multiply.
const STEPS: usize = 1 << 20;

/// The plan of the model's main graph. Inputs with an initializer are constants, but for persistent ones and those in
/// `overridden` (indices into the signature's inputs).
pub(crate) fn plan(
    model: &Model,
    registry: &KernelRegistry,
    options: &SessionOptions,
    signature: &Signature,
    overridden: &[u32],
) -> Result<Plan, SessionError> {
    let graph = model.graph();
    let mut lowering = Lowering::new(Some(model), registry, options);
    let mut scope = Scope::new(graph, Opsets::Model(model), None, String::new());
    let mut root = LBlock::default();
    let mut inputs = Vec::new();
    for (at, (&value, input)) in graph.inputs().iter().zip(&signature.inputs).enumerate() {
        let at = u32::try_from(at).expect("fewer than 2^32 inputs");
        if input.has_default && input.binding.is_none() && !overridden.contains(&at) {
            continue;
        }
        let reg = lowering.reg(facts(&input.name, input.ty.as_ref()));
        scope.set(value, Operand::Reg(reg));
        root.params.push(reg);
        inputs.push(at);
    }
    scope.retain_bound();
    lowering.block(&mut scope, &mut root)?;
    root.results = lowering.results(&mut scope, graph)?;
    if !lowering.faults.is_empty() {
        return Err(SessionError::Nodes(lowering.faults));
    }
    Ok(slots::assign(root, inputs, lowering.constants))
}

/// The plan of a decoder of a declaration, its input given.
pub(crate) fn decoder_plan(
    function: &Function,
    registry: &KernelRegistry,
    (name, value): (Arc<str>, Value),
) -> Result<Plan, SessionError> {
    let options = SessionOptions::default();
    let mut lowering = Lowering::new(None, registry, &options);
    let graph = &**function.body();
    let attributes = Attributes::default();
    let call = Call { function, attributes: &attributes };
    let mut scope = Scope::new(graph, Opsets::Function(function), Some(call), String::new());
    let input = lowering.constant(&name, value);
    for &formal in graph.inputs() {
        scope.set(formal, Operand::Constant(input));
    }
    let mut root = LBlock::default();
    lowering.block(&mut scope, &mut root)?;
    root.results = lowering.results(&mut scope, graph)?;
    if !lowering.faults.is_empty() {
        return Err(SessionError::Nodes(lowering.faults));
    }
    Ok(slots::assign(root, Vec::new(), lowering.constants))
}

pub(super) struct Lowering<'m> {
    /// `None` in a decoder of a declaration: it may not call the model's functions.
    pub model: Option<&'m Model>,
    pub registry: &'m KernelRegistry,
    pub options: &'m SessionOptions,
    pub constants: Vec<Constant>,
    pub faults: Vec<NodeFault>,
    /// By register.
    facts: Vec<InputFacts>,
    /// By constant: its name.
    names: Vec<Arc<str>>,
    initializers: FxHashMap<(*const Graph, ValueId), u32>,
    steps: usize,
    /// How many functions and bodies are around.
    pub depth: usize,
    /// The functions around.
    pub functions: Vec<*const Function>,
    /// What decodes constants on demand, by the constant.
    decoders: FxHashMap<*const EncodedValue, OnDemand>,
}

impl<'m> Lowering<'m> {
    fn new(
        model: Option<&'m Model>,
        registry: &'m KernelRegistry,
        options: &'m SessionOptions,
    ) -> Lowering<'m> {
        Lowering {
            model,
            registry,
            options,
            constants: Vec::new(),
            faults: Vec::new(),
            facts: Vec::new(),
            names: Vec::new(),
            initializers: FxHashMap::default(),
            steps: 0,
            depth: 0,
            functions: Vec::new(),
            decoders: FxHashMap::default(),
        }
    }

    /// What decodes a constant, once for all nodes that need it.
    pub(super) fn decoder(&mut self, value: &Arc<EncodedValue>) -> Result<Box<dyn Kernel>, DecodeError> {
        let key = Arc::as_ptr(value);
        if let Some(decoder) = self.decoders.get(&key) {
            return Ok(decoder.kernel());
        }
        let decoder = OnDemand::new(self.registry, value, self.options.decoder_limits)?;
        let kernel = decoder.kernel();
        self.decoders.insert(key, decoder);
        Ok(kernel)
    }

    pub(super) fn reg(&mut self, facts: InputFacts) -> Reg {
        self.facts.push(facts);
        u32::try_from(self.facts.len() - 1).expect("fewer than 2^32 registers")
    }

    fn constant(&mut self, name: &Arc<str>, value: Value) -> u32 {
        self.constants.push(Constant::new(value));
        self.names.push(name.clone());
        u32::try_from(self.constants.len() - 1).expect("fewer than 2^32 constants")
    }

    /// What is known of an operand, under the name that the scope gives it.
    fn operand_facts(&self, operand: Operand) -> InputFacts {
        match operand {
            Operand::Reg(reg) => self.facts[reg as usize].clone(),
            Operand::Constant(at) => {
                choose::constant_facts(&self.names[at as usize], self.constants[at as usize].value())
            }
        }
    }

    pub(super) fn operand(
        &mut self,
        scope: &mut Scope<'_>,
        value: ValueId,
    ) -> Result<Option<Operand>, SessionError> {
        if let Some(operand) = scope.get(value) {
            return Ok(Some(operand));
        }
        let Some(initializer) = scope.graph.initializer(value) else { return Ok(None) };
        let key = (std::ptr::from_ref(scope.graph), value);
        let at = match self.initializers.get(&key) {
            Some(&at) => at,
            None => {
                let name = scope.graph.shared_name(value);
                let constant = initializer.value().map_err(|error| SessionError::Initializer {
                    name: name.to_string(),
                    fault: error.to_string(),
                })?;
                let at = self.constant(name, constant);
                self.initializers.insert(key, at);
                at
            }
        };
        scope.set(value, Operand::Constant(at));
        Ok(Some(Operand::Constant(at)))
    }

    pub(super) fn results(
        &mut self,
        scope: &mut Scope<'_>,
        graph: &Graph,
    ) -> Result<Vec<Operand>, SessionError> {
        let mut results = Vec::with_capacity(graph.outputs().len());
        for &output in graph.outputs() {
            let operand = self.operand(scope, output)?;
            results.push(operand.ok_or_else(|| SessionError::Undefined {
                node: "(graph output)".into(),
                op: graph.name().into(),
                value: graph.value_name(output).into(),
            })?);
        }
        Ok(results)
    }

    /// Lowers the nodes of the scope's graph that its outputs need.
    pub(super) fn block(&mut self, scope: &mut Scope<'_>, block: &mut LBlock) -> Result<(), SessionError> {
        let graph = scope.graph;
        let needed = needed(graph);
        for (id, node) in graph.ordered() {
            if needed[id.0 as usize] {
                self.node(scope, node, block)?;
            }
        }
        Ok(())
    }

    fn node(&mut self, scope: &mut Scope<'_>, node: &Node, block: &mut LBlock) -> Result<(), SessionError> {
        let node = scope.resolved(node);
        let label = scope.label(&node);
        let mut inputs: SmallVec<[Option<Operand>; 4]> = SmallVec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            inputs.push(match input {
                None => None,
                Some(value) => {
                    let operand = self.operand(scope, *value)?;
                    Some(operand.ok_or_else(|| SessionError::Undefined {
                        node: label.name.to_string(),
                        op: label.op.to_string(),
                        value: scope.graph.value_name(*value).into(),
                    })?)
                }
            });
        }
        let function =
            self.model.and_then(|model| model.function(&node.domain, &node.op_type, &node.overload));
        if let Some(function) = function {
            return self.call(scope, &node, function, &inputs, block);
        }
        if node.domain == "ai.onnx.preview" && node.op_type == "FlexAttention" {
            return self.flex_attention(scope, &node, &label, &inputs, block);
        }
        if plain_domain(&node.domain).is_empty() {
            match &*node.op_type {
                "Identity" if inputs.len() == 1 && node.outputs.len() == 1 => {
                    match (inputs[0], node.outputs[0]) {
                        (Some(operand), Some(output)) => scope.set(output, operand),
                        (None, Some(output)) => scope.leave_out(output),
                        (_, None) => {}
                    }
                    return Ok(());
                }
                "Constant" => {
                    if let (Some(value), Some(Some(output))) =
                        (constant::of_node(&node.attributes), node.outputs.first())
                    {
                        let at = self.constant(scope.graph.shared_name(*output), value);
                        scope.set(*output, Operand::Constant(at));
                        return Ok(());
                    }
                }
                "If" | "Loop" | "Scan" | "SequenceMap" => {
                    let work = self.control(scope, &node, &label)?;
                    return self.push(scope, &node, work, inputs, label, block);
                }
                _ => {}
            }
        }
        let work = self.kernel(scope, &node, &label, &mut inputs, block);
        self.push(scope, &node, work, inputs, label, block)
    }

    /// The step of a node; a fault was noted where there is no work.
    pub(super) fn push(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        work: Option<Work<LBlock>>,
        inputs: SmallVec<[Option<Operand>; 4]>,
        label: Label,
        block: &mut LBlock,
    ) -> Result<(), SessionError> {
        self.count_step(&label)?;
        let mut outputs = SmallVec::with_capacity(node.outputs.len());
        for output in &node.outputs {
            outputs.push(output.map(|value| {
                let name = scope.graph.shared_name(value);
                let reg = self.reg(facts(name, scope.graph.value_type(value)));
                scope.set(value, Operand::Reg(reg));
                reg
            }));
        }
        if let Some(work) = work {
            block.steps.push(LStep { work, inputs, outputs, label });
        }
        Ok(())
    }

    pub(super) fn count_step(&mut self, label: &Label) -> Result<(), SessionError> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(SessionError::TooLarge { node: label.name.to_string(), limit: STEPS });
        }
        Ok(())
    }

    pub(super) fn fault(&mut self, node: &Node, label: &Label, opset: Option<i64>, kind: NodeFaultKind) {
        self.faults.push(NodeFault {
            node: label.name.to_string(),
            domain: plain_domain(&node.domain).into(),
            op: node.op_type.clone(),
            opset: opset.unwrap_or(0),
            kind,
        });
    }

    pub(super) fn kernel(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        label: &Label,
        inputs: &mut SmallVec<[Option<Operand>; 4]>,
        block: &mut LBlock,
    ) -> Option<Work<LBlock>> {
        let Some(opset) = scope.opset(&node.domain) else {
            self.fault(node, label, None, NodeFaultKind::NoOpset);
            return None;
        };
        let facts: Vec<_> = inputs
            .iter()
            .map(|input| {
                input.map(|input| InputFacts { next: scope.next(node, input), ..self.operand_facts(input) })
            })
            .collect();
        match choose::kernel(self, node, opset, &facts) {
            Ok(Choice::Kernel(kernel)) => Some(Work::Kernel(kernel)),
            Ok(Choice::Decoded { kernel, decoders }) => {
                for (index, decoder) in decoders {
                    let name: Arc<str> = format!("{}/decode", label.name).into();
                    let reg = self.reg(choose::logical_facts(facts[index].as_ref()?));
                    block.steps.push(LStep {
                        work: Work::Kernel(decoder),
                        inputs: SmallVec::from_slice(&[inputs[index]]),
                        outputs: SmallVec::from_slice(&[Some(reg)]),
                        label: Label { name, op: "ai.heirloom.Decode".into() },
                    });
                    inputs[index] = Some(Operand::Reg(reg));
                }
                Some(Work::Kernel(kernel))
            }
            Err(kind) => {
                self.fault(node, label, Some(opset), kind);
                None
            }
        }
    }
}
