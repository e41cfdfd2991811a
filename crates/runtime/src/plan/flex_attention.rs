//! `FlexAttention` to its three stages, with the steps of its sub-graphs between them.

use heirloom_graph::{AttrValue, Graph, Node};
use smallvec::SmallVec;

use super::lower::Lowering;
use super::scope::Scope;
use super::{LBlock, LStep, Label, Operand};
use crate::{BuildError, InputFacts, NodeFaultKind, SessionError};

impl Lowering<'_> {
    pub(super) fn flex_attention(
        &mut self,
        scope: &mut Scope<'_>,
        node: &Node,
        label: &Label,
        inputs: &[Option<Operand>],
        block: &mut LBlock,
    ) -> Result<(), SessionError> {
        let (bodies, own) = match parts(node) {
            Ok(parts) => parts,
            Err(kind) => {
                self.fault(node, label, scope.opset(&node.domain), kind);
                return self.push(scope, node, None, SmallVec::new(), label.clone(), block);
            }
        };
        let input = |at: usize| inputs.get(at).copied().flatten();
        let (query, key, value) = (input(0), input(1), input(2));
        let stage = |number: i64| {
            let mut stage = own.clone();
            stage.attributes.set("stage", AttrValue::Int(number));
            stage
        };
        let mut values = query;
        for (at, body) in (0_i64..).zip(bodies) {
            let mut inputs: SmallVec<[_; 4]> = if at == 0 {
                SmallVec::from_slice(&[query, key])
            } else {
                SmallVec::from_slice(&[values, query, key])
            };
            let work = self.kernel(scope, &stage(at), label, &mut inputs, block);
            // What is wrong with the node was noted; once is enough.
            let Some(work) = work else {
                return self.push(scope, node, None, SmallVec::new(), label.clone(), block);
            };
            self.count_step(label)?;
            let reg = self.reg(InputFacts { name: label.name.to_string(), ..InputFacts::default() });
            let outputs = SmallVec::from_slice(&[Some(reg)]);
            block.steps.push(LStep { work, inputs, outputs, label: label.clone() });
            values = Some(Operand::Reg(reg));
            if let Some(body) = body {
                values = Some(self.inline(scope, label, body, Operand::Reg(reg), block)?);
            }
        }
        let mut inputs: SmallVec<[_; 4]> = SmallVec::from_slice(&[values, query, value]);
        let work = self.kernel(scope, &stage(2), label, &mut inputs, block);
        self.push(scope, node, work, inputs, label.clone(), block)
    }

    /// The steps of a body of one input and one output.
    fn inline(
        &mut self,
        scope: &mut Scope<'_>,
        label: &Label,
        graph: &Graph,
        input: Operand,
        block: &mut LBlock,
    ) -> Result<Operand, SessionError> {
        let mut inner = self.enter(scope, label, graph)?;
        inner.set(graph.inputs()[0], input);
        self.depth += 1;
        let done = self.block(&mut inner, block);
        self.depth -= 1;
        done?;
        Ok(self.results(&mut inner, graph)?[0])
    }
}

/// The sub-graphs, and the node without them.
fn parts(node: &Node) -> Result<([Option<&Graph>; 2], Node), NodeFaultKind> {
    let mut bodies = [None; 2];
    for (body, name) in bodies.iter_mut().zip(["score_mod", "prob_mod"]) {
        let Some(graph) = node.attributes.opt_graph(name).map_err(BuildError::from)? else { continue };
        for (what, count) in [("inputs", graph.inputs().len()), ("outputs", graph.outputs().len())] {
            if count != 1 {
                let (expected, actual) = ("1".into(), count.to_string());
                return Err(NodeFaultKind::Body { attribute: name, what, expected, actual });
            }
        }
        *body = Some(&**graph);
    }
    if node.inputs.len() != 3 || node.inputs.contains(&None) {
        let (value, reason) = (node.inputs.len().to_string(), "queries, keys and values are".into());
        return Err(BuildError::Unsupported { name: "inputs".into(), value, reason }.into());
    }
    if node.attributes.get("stage").is_some() {
        let (value, reason) = ("an attribute".into(), "the operator has none of this name".into());
        return Err(BuildError::Unsupported { name: "stage".into(), value, reason }.into());
    }
    let attributes = node.attributes.iter().filter(|(name, _)| !matches!(*name, "score_mod" | "prob_mod"));
    let attributes = attributes.map(|(name, value)| (name.into(), value.clone())).collect();
    Ok((bodies, Node { attributes, ..node.clone() }))
}
