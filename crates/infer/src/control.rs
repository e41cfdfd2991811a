//! Operators that run bodies.

use std::sync::Arc;

use heirloom_graph::{AttrValue, Graph, Node, NodeId};
use heirloom_mem::DType;

use crate::Expr;
use crate::context::Scope;
use crate::fact::{Dim, Elem, Fact, Type};
use crate::merge::either;
use crate::walk::{Env, Walk, at};

/// Rounds until the types of values that a loop carries stay the same; each makes them less certain.
const MOST_ROUNDS: usize = 8;

impl Walk<'_> {
    pub(crate) fn control(
        &mut self,
        graph: &Graph,
        scope: &mut Scope,
        env: Env<'_>,
        (id, node): (NodeId, &Node),
    ) -> Vec<Fact> {
        let place = format!("{}{}/", env.place, node.describe(id));
        let env = Env { place: &place, ..env };
        let mut outputs = match &*node.op_type {
            "If" => self.branch(scope, env, (id, node)),
            "Loop" => self.repeat(graph, scope, env, (id, node)),
            "Scan" => self.scan(scope, env, (id, node)),
            _ => self.map(scope, env, (id, node)),
        };
        outputs.resize_with(node.outputs.len(), Fact::default);
        outputs
    }

    /// Runs a body of a node; captured values are those of `scope`.
    fn body(
        &mut self,
        scope: &Scope,
        env: Env<'_>,
        body: &Graph,
        inputs: Vec<Option<Fact>>,
    ) -> (Scope, Vec<Fact>) {
        let inner = self.graph(body, env, inputs, &|outer| scope.facts[at(outer)].clone());
        let outputs = body.outputs().iter().map(|&value| inner.facts[at(value)].clone()).collect();
        (inner, outputs)
    }

    fn branch(&mut self, scope: &mut Scope, env: Env<'_>, (id, node): (NodeId, &Node)) -> Vec<Fact> {
        let condition = node.inputs.first().copied().flatten().and_then(|value| {
            match scope.facts[at(value)].elems.as_deref() {
                Some([Some(Elem::Bool(value))]) => Some(*value),
                _ => None,
            }
        });
        let mut sides = Vec::new();
        for (name, taken) in [("then_branch", true), ("else_branch", false)] {
            let Some(AttrValue::Graph(body)) = node.attributes.get(name) else { continue };
            // A branch that is never taken need not make sense for these shapes.
            let is_dead = condition.is_some_and(|it| it != taken);
            self.quiet += usize::from(is_dead);
            let (inner, outputs) = self.body(scope, env, &body.clone(), Vec::new());
            self.quiet -= usize::from(is_dead);
            scope.keep(id, name, inner);
            if !is_dead {
                sides.push(outputs);
            }
        }
        let mut sides = sides.into_iter();
        let first = sides.next().unwrap_or_default();
        match sides.next() {
            None => first,
            Some(second) => first.into_iter().zip(second).map(|(a, b)| one_of(&a, &b)).collect(),
        }
    }

    fn repeat(
        &mut self,
        graph: &Graph,
        scope: &mut Scope,
        env: Env<'_>,
        (id, node): (NodeId, &Node),
    ) -> Vec<Fact> {
        let Some(AttrValue::Graph(body)) = node.attributes.get("body") else { return Vec::new() };
        let body = body.clone();
        let fact =
            |index: usize| node.inputs.get(index).copied().flatten().map(|it| scope.facts[at(it)].clone());
        let (trips, condition) = (fact(0), fact(1));
        let carried = body.inputs().len().saturating_sub(2);
        let scalar = |dtype: DType| Some(Fact::tensor(dtype, Some(Vec::new())));
        let initial: Vec<Fact> = (0..carried).map(|index| fact(index + 2).unwrap_or_default()).collect();
        // The elements of carried values change; their types may.
        let without = |fact: &Fact| Fact { elems: None, ..fact.clone() };
        let mut state: Vec<Fact> = initial.iter().map(without).collect();
        let mut result = None;
        for round in 0..MOST_ROUNDS {
            let inputs = [scalar(DType::Int64), scalar(DType::Bool)]
                .into_iter()
                .chain(state.iter().cloned().map(Some));
            self.quiet += 1;
            let (inner, outputs) = self.body(scope, env, &body, inputs.collect());
            self.quiet -= 1;
            let next: Vec<Fact> = state
                .iter()
                .zip(outputs.iter().skip(1))
                .map(|(old, new)| {
                    if round + 1 == MOST_ROUNDS {
                        less(&one_of(old, &without(new)))
                    } else {
                        one_of(old, &without(new))
                    }
                })
                .collect();
            let is_stable = next.iter().zip(&state).all(|(a, b)| a.ty == b.ty);
            state = next;
            if is_stable || round + 1 == MOST_ROUNDS {
                result = Some((inner, outputs));
                break;
            }
        }
        // Once more with what is certain, to report.
        let inputs =
            [scalar(DType::Int64), scalar(DType::Bool)].into_iter().chain(state.iter().cloned().map(Some));
        let (inner, outputs) = match result {
            Some(_) => self.body(scope, env, &body, inputs.collect()),
            None => return Vec::new(),
        };
        let always = |fact: Option<&Fact>| match fact {
            None => true,
            Some(fact) => matches!(fact.elems.as_deref(), Some([Some(Elem::Bool(true))])),
        };
        let count: Dim = match trips.as_ref().and_then(|it| it.elems.as_deref()?.first()?.clone()) {
            Some(Elem::Int(count)) if always(condition.as_ref()) && always(outputs.first()) => {
                count.greater_of(&Expr::number(0))
            }
            _ => None,
        };
        scope.keep(id, "body", inner);
        let collected = outputs.iter().skip(1 + carried).enumerate().map(|(index, fact)| {
            let name =
                node.outputs.get(carried + index).copied().flatten().map_or("", |it| graph.value_name(it));
            let count = count.clone().or_else(|| Some(Expr::fresh(&format!("{}{name}.0", env.place))));
            stacked(fact, count, 0)
        });
        state.iter().cloned().chain(collected).collect()
    }

    fn scan(&mut self, scope: &mut Scope, env: Env<'_>, (id, node): (NodeId, &Node)) -> Vec<Fact> {
        let Some(AttrValue::Graph(body)) = node.attributes.get("body") else { return Vec::new() };
        let body = body.clone();
        let scanned = usize::try_from(node.attributes.int_or("num_scan_inputs", 0).unwrap_or(0)).unwrap_or(0);
        let Some(carried) = body.inputs().len().checked_sub(scanned) else { return Vec::new() };
        // Version 8 has a batch and lengths in front of all; it is not followed.
        if env.opsets.iter().any(|(domain, version)| domain.is_empty() && *version < 9) {
            return Vec::new();
        }
        let list = |name: &str| node.attributes.opt_ints(name).ok().flatten().map(Vec::from);
        let (in_axes, out_axes) = (list("scan_input_axes"), list("scan_output_axes"));
        let axis = |list: &Option<Vec<i64>>, index: usize| {
            list.as_ref().and_then(|it| it.get(index).copied()).unwrap_or(0)
        };
        let fact =
            |index: usize| node.inputs.get(index).copied().flatten().map(|it| scope.facts[at(it)].clone());
        let mut inputs: Vec<Option<Fact>> =
            (0..carried).map(|index| fact(index).map(|fact| Fact { elems: None, ..fact })).collect();
        let mut length: Dim = None;
        for index in 0..scanned {
            let given = fact(carried + index);
            let (extent, rest) =
                given.map_or((None, Fact::default()), |fact| unstacked(&fact, axis(&in_axes, index)));
            length = crate::rules::better(length, extent);
            inputs.push(Some(rest));
        }
        let (inner, outputs) = self.body(scope, env, &body, inputs.clone());
        scope.keep(id, "body", inner);
        let states = outputs.iter().take(carried).zip(&inputs).map(|(new, old)| match old {
            Some(old) => one_of(old, new),
            None => new.clone(),
        });
        let collected = outputs
            .iter()
            .skip(carried)
            .enumerate()
            .map(|(index, fact)| stacked(fact, length.clone(), axis(&out_axes, index)));
        states.chain(collected).collect()
    }

    /// `SequenceMap`: the body for each element.
    fn map(&mut self, scope: &mut Scope, env: Env<'_>, (id, node): (NodeId, &Node)) -> Vec<Fact> {
        let Some(AttrValue::Graph(body)) = node.attributes.get("body") else { return Vec::new() };
        let body = body.clone();
        let element = |value: &Option<heirloom_graph::ValueId>| {
            let fact = scope.facts[at((*value)?)].clone();
            Some(match fact.ty {
                Some(Type::Sequence(Some(element))) => Fact::of((*element).clone()),
                Some(Type::Sequence(None)) => Fact::default(),
                _ => fact,
            })
        };
        let inputs = node.inputs.iter().map(element).collect();
        let (inner, outputs) = self.body(scope, env, &body, inputs);
        scope.keep(id, "body", inner);
        outputs.into_iter().map(|fact| Fact::of(Type::Sequence(fact.ty.map(Arc::new)))).collect()
    }
}

/// What holds of both.
fn one_of(a: &Fact, b: &Fact) -> Fact {
    let ty = match (&a.ty, &b.ty) {
        (Some(a), Some(b)) => either(a, b),
        _ => None,
    };
    let elems = match (&a.elems, &b.elems) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.iter().zip(b).map(|(a, b)| a.clone().filter(|_| a == b)).collect())
        }
        _ => None,
    };
    Fact { ty, elems: None, physical: None }.with_elems(elems)
}

/// Only what no round can change: the element type.
fn less(fact: &Fact) -> Fact {
    match &fact.ty {
        Some(Type::Tensor(tensor)) => Fact::tensor(tensor.dtype, None),
        _ => fact.clone(),
    }
}

/// The type of what is collected over all rounds.
fn stacked(fact: &Fact, count: Dim, axis: i64) -> Fact {
    let Some(Type::Tensor(tensor)) = &fact.ty else { return Fact::default() };
    let dims = tensor.dims.clone().and_then(|mut dims| {
        let rank = dims.len() as i64 + 1;
        let at =
            usize::try_from(if axis < 0 { axis + rank } else { axis }).ok().filter(|at| *at <= dims.len())?;
        dims.insert(at, count);
        Some(dims)
    });
    Fact::tensor(tensor.dtype, dims)
}

/// The extent of an axis, and the type without it.
fn unstacked(fact: &Fact, axis: i64) -> (Dim, Fact) {
    let Some(Type::Tensor(tensor)) = &fact.ty else { return (None, Fact::default()) };
    let Some(dims) = &tensor.dims else { return (None, Fact::tensor(tensor.dtype, None)) };
    let at = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis })
        .ok()
        .filter(|at| *at < dims.len());
    let Some(at) = at else { return (None, Fact::tensor(tensor.dtype, None)) };
    let mut dims = dims.clone();
    let extent = dims.remove(at);
    (extent, Fact::tensor(tensor.dtype, Some(dims)))
}
