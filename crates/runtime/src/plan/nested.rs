//! What stands within a node: a function's body, or the bodies of control flow.

use heirloom_graph::{Function, Graph, Node, ValueId};

use super::lower::{DEPTH, Lowering};
use super::scope::{Call, Opsets, Scope, facts};
use super::{LBlock, Label, Operand};
use crate::SessionError;

impl Lowering<'_> {
    /// The steps of a function's body in place of a node.
    pub(super) fn call(
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
        for (at, &formal) in graph.inputs().iter().enumerate() {
            match inputs.get(at).copied().flatten() {
                Some(actual) => inner.set(formal, actual),
                None => inner.leave_out(formal),
            }
        }
        inner.retain(scope, &node.outputs);
        self.depth += 1;
        self.functions.push(this);
        let done = self.block(&mut inner, block);
        self.functions.pop();
        self.depth -= 1;
        done?;
        for (output, &formal) in node.outputs.iter().zip(graph.outputs()) {
            let Some(output) = output else { continue };
            match self.operand(&mut inner, formal)? {
                Some(operand) => scope.set(*output, operand),
                None if inner.is_absent(formal) => scope.leave_out(*output),
                None => {}
            }
        }
        Ok(())
    }

    /// The scope of a body, with what it captures.
    pub(super) fn enter<'g, 's: 'g>(
        &mut self,
        scope: &mut Scope<'s>,
        label: &Label,
        graph: &'g Graph,
    ) -> Result<Scope<'g>, SessionError> {
        if self.depth >= DEPTH {
            return Err(SessionError::Nesting { what: "node", name: label.name.to_string(), limit: DEPTH });
        }
        let mut inner = Scope::new(graph, scope.opsets, scope.call, format!("{}/", label.name));
        for capture in graph.captures() {
            match self.operand(scope, capture.outer)? {
                Some(operand) => inner.set(capture.inner, operand),
                None if scope.is_absent(capture.outer) => inner.leave_out(capture.inner),
                None => {
                    return Err(SessionError::Undefined {
                        node: label.name.to_string(),
                        op: label.op.to_string(),
                        value: graph.value_name(capture.inner).into(),
                    });
                }
            }
        }
        Ok(inner)
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
        let mut inner = self.enter(scope, label, graph)?;
        inner.retain(scope, outputs);
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
