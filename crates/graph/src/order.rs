//! The order of execution.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{Source, ValueEntry};
use crate::{Node, NodeId};

fn at(index: u32) -> usize {
    usize::try_from(index).expect("an index fits the address space")
}

/// The nodes whose outputs `node` needs.
fn needs<'a>(node: &'a Node, values: &'a [ValueEntry]) -> impl Iterator<Item = NodeId> + 'a {
    let read = node.inputs.iter().flatten().copied().chain(node.captures());
    read.filter_map(|value| match values[at(value.0)].source {
        Source::Node(producer) => Some(producer),
        _ => None,
    })
}

/// An order in which every node follows those it needs, as close to the given one as can be; or the nodes of a
/// cycle, each needing the next, the last needing the first.
pub(crate) fn topological(nodes: &[Node], values: &[ValueEntry]) -> Result<Vec<NodeId>, Vec<NodeId>> {
    let ids = || (0..u32::try_from(nodes.len()).expect("fewer than 2^32 nodes")).map(NodeId);
    let sorted = ids().all(|id| needs(&nodes[at(id.0)], values).all(|producer| producer < id));
    if sorted {
        return Ok(ids().collect());
    }
    let mut missing = vec![0usize; nodes.len()];
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    for id in ids() {
        for producer in needs(&nodes[at(id.0)], values) {
            missing[at(id.0)] += 1;
            users[at(producer.0)].push(id);
        }
    }
    let mut ready: BinaryHeap<Reverse<NodeId>> =
        ids().filter(|id| missing[at(id.0)] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for &user in &users[at(id.0)] {
            missing[at(user.0)] -= 1;
            if missing[at(user.0)] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() == nodes.len() { Ok(order) } else { Err(cycle(nodes, values, &missing)) }
}

/// Follows needs among the nodes that never became ready: the way must return to where it was.
fn cycle(nodes: &[Node], values: &[ValueEntry], missing: &[usize]) -> Vec<NodeId> {
    let blocked = |id: NodeId| missing[at(id.0)] > 0;
    let start = missing.iter().position(|&count| count > 0).and_then(|index| u32::try_from(index).ok());
    let mut way: Vec<NodeId> = Vec::new();
    let mut seen = vec![None; nodes.len()];
    let mut next = start.map(NodeId);
    while let Some(id) = next {
        if let Some(first) = seen[at(id.0)] {
            return way.split_off(first);
        }
        seen[at(id.0)] = Some(way.len());
        way.push(id);
        next = needs(&nodes[at(id.0)], values).find(|&producer| blocked(producer));
    }
    way
}
