//! From a graph to steps over registers: functions expanded, constants collected, kernels chosen.

use std::borrow::Cow;
use std::sync::Arc;

use heirloom_graph::{AttrValue, Attributes, Function, Graph, Model, Node, NodeId, ValueId};
use heirloom_types::{EncodedValue, Value, ValueType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::choose::{self, Choice};
use super::{Constant, LBlock, LStep, Label, Operand, Plan, Reg, Work, constant, slots};
use crate::decode::OnDemand;
use crate::signature::Signature;
use crate::{
    DecodeError, InputFacts, Kernel, KernelRegistry, NodeFault, NodeFaultKind, SessionError, SessionOptions,
};

/// How deep functions and bodies may nest.
pub(crate) const DEPTH: usize = 64;
/// The most steps of a plan: functions that call functions multiply.
const STEPS: usize = 1 << 22;

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
    for binding in graph.bindings() {
        if let Some(Operand::Reg(reg)) = scope.values[binding.input.0 as usize] {
            scope.retained.insert(binding.output, reg);
        }
    }
    scope.retain_through_identity();
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

/// What a declared type says of a value before any call.
pub(super) fn facts(name: &Arc<str>, ty: Option<&ValueType>) -> InputFacts {
    let spec = ty.and_then(ValueType::as_tensor);
    InputFacts {
        name: name.to_string(),
        constant: None,
        dtype: spec.map(|spec| spec.dtype),
        shape: spec.and_then(heirloom_types::TensorSpec::shape),
        next: None,
    }
}

/// Which version of a domain the nodes of a graph mean.
#[derive(Clone, Copy)]
enum Opsets<'a> {
    Model(&'a Model),
    Function(&'a Function),
}

impl Opsets<'_> {
    fn of(self, domain: &str) -> Option<i64> {
        match self {
            Opsets::Model(model) => model.opset(domain),
            Opsets::Function(function) => function.opset(domain),
        }
    }
}

/// What the nodes of a function's body may refer to.
#[derive(Clone, Copy)]
struct Call<'a> {
    function: &'a Function,
    attributes: &'a Attributes,
}

/// One graph while it is lowered.
pub(super) struct Scope<'a> {
    graph: &'a Graph,
    opsets: Opsets<'a>,
    call: Option<Call<'a>>,
    /// Names of the calls and bodies around, with `/` behind each.
    path: String,
    values: Vec<Option<Operand>>,
    /// Values that states retain, with the persistent input that each is for.
    retained: FxHashMap<ValueId, Reg>,
}

impl<'a> Scope<'a> {
    fn new(graph: &'a Graph, opsets: Opsets<'a>, call: Option<Call<'a>>, path: String) -> Scope<'a> {
        let values = vec![None; graph.value_count()];
        Scope { graph, opsets, call, path, values, retained: FxHashMap::default() }
    }

    /// Notes that outputs of this graph become the outputs `outer` of the graph around.
    fn retain(&mut self, outer: &Scope<'_>, outputs: &[Option<ValueId>]) {
        for (output, &inner) in outputs.iter().zip(self.graph.outputs()) {
            if let Some(&reg) = output.as_ref().and_then(|output| outer.retained.get(output)) {
                self.retained.insert(inner, reg);
            }
        }
        self.retain_through_identity();
    }

    /// What `Identity` passes to a retained value is retained itself.
    fn retain_through_identity(&mut self) {
        if self.retained.is_empty() {
            return;
        }
        for &id in self.graph.order().iter().rev() {
            let node = self.graph.node(id);
            let identity = node.op_type == "Identity" && plain_domain(&node.domain).is_empty();
            if identity
                && let (Some(Some(from)), Some(Some(to))) = (node.inputs.first(), node.outputs.first())
                && let Some(&reg) = self.retained.get(to)
            {
                self.retained.insert(*from, reg);
            }
        }
    }

    fn set(&mut self, value: ValueId, operand: Operand) {
        self.values[value.0 as usize] = Some(operand);
    }

    /// The version of `domain` that this graph's nodes mean.
    pub(super) fn opset(&self, domain: &str) -> Option<i64> {
        self.opsets.of(domain)
    }

    fn label(&self, node: &Node) -> Label {
        let name = if node.name.is_empty() {
            let output = node.outputs.iter().flatten().next();
            output.map_or_else(|| node.op_type.clone(), |&output| self.graph.value_name(output).to_string())
        } else {
            node.name.clone()
        };
        let domain = plain_domain(&node.domain);
        let op = if domain.is_empty() { node.op_type.clone() } else { format!("{domain}.{}", node.op_type) };
        Label { name: format!("{}{name}", self.path).into(), op: op.into() }
    }
}

/// The domain's name, empty for ai.onnx.
pub(super) fn plain_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
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
    depth: usize,
    functions: Vec<*const Function>,
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

    fn operand(&mut self, scope: &mut Scope<'_>, value: ValueId) -> Result<Option<Operand>, SessionError> {
        if let Some(operand) = scope.values[value.0 as usize] {
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

    fn results(&mut self, scope: &mut Scope<'_>, graph: &Graph) -> Result<Vec<Operand>, SessionError> {
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
    fn block(&mut self, scope: &mut Scope<'_>, block: &mut LBlock) -> Result<(), SessionError> {
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
        let node = resolved(node, scope.call);
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
        if plain_domain(&node.domain).is_empty() {
            match &*node.op_type {
                "Identity" if inputs.len() == 1 && node.outputs.len() == 1 => {
                    if let (Some(operand), Some(output)) = (inputs[0], node.outputs[0]) {
                        scope.set(output, operand);
                        return Ok(());
                    }
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
    fn push(
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

    fn count_step(&mut self, label: &Label) -> Result<(), SessionError> {
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

    fn kernel(
        &mut self,
        scope: &Scope<'_>,
        node: &Node,
        label: &Label,
        inputs: &mut SmallVec<[Option<Operand>; 4]>,
        block: &mut LBlock,
    ) -> Option<Work<LBlock>> {
        let Some(opset) = scope.opsets.of(&node.domain) else {
            self.fault(node, label, None, NodeFaultKind::NoOpset);
            return None;
        };
        let next = |input: Operand| {
            let retained = |output: &Option<ValueId>| output.and_then(|output| scope.retained.get(&output));
            node.outputs
                .iter()
                .position(|output| retained(output).is_some_and(|&reg| input == Operand::Reg(reg)))
        };
        let facts: Vec<_> = inputs
            .iter()
            .map(|input| input.map(|input| InputFacts { next: next(input), ..self.operand_facts(input) }))
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

    /// The steps of a function's body in place of a node.
    fn call(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        function: &Function,
        inputs: &[Option<Operand>],
        block: &mut LBlock,
    ) -> Result<(), SessionError> {
        let nesting = || SessionError::Nesting { what: "function", name: node.op_type.clone(), limit: DEPTH };
        let this = std::ptr::from_ref(function);
        if self.depth >= DEPTH || self.functions.contains(&this) {
            return Err(nesting());
        }
        let label = scope.label(node);
        self.count_step(&label)?;
        let graph = &**function.body();
        let call = Call { function, attributes: &node.attributes };
        let mut inner = Scope::new(graph, Opsets::Function(function), Some(call), format!("{}/", label.name));
        for (&formal, actual) in graph.inputs().iter().zip(inputs) {
            inner.values[formal.0 as usize] = *actual;
        }
        inner.retain(scope, &node.outputs);
        self.depth += 1;
        self.functions.push(this);
        let done = self.function_body(&mut inner, graph, inputs.len(), block);
        self.functions.pop();
        self.depth -= 1;
        done?;
        for (output, &formal) in node.outputs.iter().zip(graph.outputs()) {
            if let Some(output) = output {
                let operand = self.operand(&mut inner, formal)?;
                scope.values[output.0 as usize] = operand;
            }
        }
        Ok(())
    }

    /// Nodes of a body read formal inputs that the call left out as absent.
    fn function_body(
        &mut self,
        inner: &mut Scope<'_>,
        graph: &Graph,
        given: usize,
        block: &mut LBlock,
    ) -> Result<(), SessionError> {
        let absent: Vec<ValueId> = graph
            .inputs()
            .iter()
            .enumerate()
            .filter(|(at, value)| *at >= given || inner.values[value.0 as usize].is_none())
            .map(|(_, value)| *value)
            .collect();
        let needed = needed(graph);
        for (id, node) in graph.ordered() {
            if !needed[id.0 as usize] {
                continue;
            }
            if absent.is_empty() || !node.inputs.iter().flatten().any(|value| absent.contains(value)) {
                self.node(inner, node, block)?;
                continue;
            }
            let mut without = node.clone();
            for input in &mut without.inputs {
                if input.is_some_and(|value| absent.contains(&value)) {
                    *input = None;
                }
            }
            self.node(inner, &without, block)?;
        }
        Ok(())
    }

    /// The block of a body; its parameters are the body's inputs. Its outputs become `outputs` of the graph around,
    /// where it runs at most once.
    pub(super) fn body(
        &mut self,
        scope: &mut Scope<'_>,
        label: &Label,
        graph: &Graph,
        outputs: &[Option<ValueId>],
    ) -> Result<LBlock, SessionError> {
        if self.depth >= DEPTH {
            return Err(SessionError::Nesting { what: "node", name: label.name.to_string(), limit: DEPTH });
        }
        let mut inner = Scope::new(graph, scope.opsets, scope.call, format!("{}/", label.name));
        inner.retain(scope, outputs);
        for capture in graph.captures() {
            let operand = self.operand(scope, capture.outer)?;
            inner.values[capture.inner.0 as usize] =
                Some(operand.ok_or_else(|| SessionError::Undefined {
                    node: label.name.to_string(),
                    op: label.op.to_string(),
                    value: graph.value_name(capture.inner).into(),
                })?);
        }
        let mut block = LBlock::default();
        for &input in graph.inputs() {
            let reg = self.reg(facts(graph.shared_name(input), graph.value_type(input)));
            inner.set(input, Operand::Reg(reg));
            block.params.push(reg);
        }
        self.depth += 1;
        let done = self.block(&mut inner, &mut block);
        self.depth -= 1;
        done?;
        block.results = self.results(&mut inner, graph)?;
        Ok(block)
    }
}

/// The node with the attributes that its function's call gives it.
fn resolved<'n>(node: &'n Node, call: Option<Call<'_>>) -> Cow<'n, Node> {
    let refers = |(_, value): (&str, &AttrValue)| matches!(value, AttrValue::Reference(_));
    let Some(call) = call.filter(|_| node.attributes.iter().any(refers)) else { return Cow::Borrowed(node) };
    let mut node = node.clone();
    let resolve = |(name, value): (&str, &AttrValue)| match value {
        AttrValue::Reference(of) => {
            let value = call.attributes.get(of).or_else(|| call.function.defaults().get(of))?;
            Some((name.to_string(), value.clone()))
        }
        value => Some((name.to_string(), value.clone())),
    };
    node.attributes = node.attributes.iter().filter_map(resolve).collect();
    Cow::Owned(node)
}

/// Which nodes the graph's outputs need.
fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    let mut open: Vec<NodeId> = graph.outputs().iter().filter_map(|&value| graph.producer(value)).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut needed[id.0 as usize], true) {
            continue;
        }
        let node = graph.node(id);
        let read = node.inputs.iter().flatten().copied().chain(node.captures());
        open.extend(read.filter_map(|value| graph.producer(value)));
    }
    needed
}
