//! Which functions call which: a circle could never be executed.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::function::canonical_domain;
use crate::path::{FaultList, Path};
use crate::{Function, Graph, Node, Problem};

type Index = FxHashMap<(String, String, String), usize>;

fn called(node: &Node, by_name: &Index) -> Option<usize> {
    let key = (canonical_domain(&node.domain).into(), node.op_type.clone(), node.overload.clone());
    by_name.get(&key).copied()
}

/// The functions that a body calls, its bodies' too.
fn calls(graph: &Graph, by_name: &Index, found: &mut Vec<usize>) {
    for node in graph.nodes() {
        found.extend(called(node, by_name));
        node.bodies().for_each(|body| calls(body, by_name, found));
    }
}

/// Lists a circle of functions, if there is one.
pub(crate) fn check(functions: &[Arc<Function>], by_name: &Index, faults: &mut FaultList) {
    if functions.is_empty() {
        return;
    }
    let edges: Vec<Vec<usize>> = functions
        .iter()
        .map(|function| {
            let mut found = Vec::new();
            calls(function.body(), by_name, &mut found);
            found.sort_unstable();
            found.dedup();
            found
        })
        .collect();
    // Depth first without recursion: a chain of functions can be long.
    let mut is_done = vec![false; functions.len()];
    for start in 0..functions.len() {
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        let mut is_on_way = vec![false; functions.len()];
        while let Some((function, next)) = way.last_mut() {
            let function = *function;
            if is_done[function] {
                way.pop();
                is_on_way[function] = false;
                continue;
            }
            is_on_way[function] = true;
            match edges[function].get(*next) {
                None => {
                    is_done[function] = true;
                    is_on_way[function] = false;
                    way.pop();
                }
                Some(&callee) => {
                    *next += 1;
                    if is_on_way[callee] {
                        let first = way.iter().position(|(it, _)| *it == callee).unwrap_or(0);
                        let names = way[first..].iter().map(|(it, _)| functions[*it].name().into());
                        faults.push(
                            &Path::ROOT.index("functions", callee),
                            Problem::Recursion { functions: names.collect() },
                        );
                        return;
                    }
                    if !is_done[callee] {
                        way.push((callee, 0));
                    }
                }
            }
        }
    }
}
