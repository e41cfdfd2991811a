//! Constants that mean the same: of one type, layout, parameters and logical type, and of equal payload.

use heirloom_graph::Initializer;
use rustc_hash::FxHashMap;

use super::PassCx;
use super::constants::constant;
use super::edits::Edits;
use super::view::View;

pub(super) fn run(_cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let graph = view.graph;
    let mut edits = Edits::default();
    let mut kept: FxHashMap<String, Vec<(&str, &Initializer)>> = FxHashMap::default();
    for (value, initializer) in graph.initializers() {
        if constant(graph, value).is_none() {
            continue;
        }
        // Payloads are compared only among constants that could be the same by all else.
        let key = match initializer {
            Initializer::Tensor(it) => format!("{} {:?}", it.dtype(), it.shape()),
            Initializer::Strings(it) => format!("strings {:?}", it.shape),
            Initializer::Encoded(it) => format!("{} {:?} {}", it.layout, it.logical, it.payload.len()),
            _ => continue,
        };
        let same = kept.entry(key).or_default();
        let name = graph.value_name(value);
        match same.iter().find(|(_, first)| means_the_same(first, initializer)) {
            Some((first, _)) if !view.named.contains(&value) => {
                edits.replace(name, first);
                edits.remove_constant(name);
            }
            Some(_) => {}
            None => same.push((name, initializer)),
        }
    }
    edits
}

fn means_the_same(a: &Initializer, b: &Initializer) -> bool {
    match (a, b) {
        (Initializer::Tensor(a), Initializer::Tensor(b)) => {
            a.dtype() == b.dtype()
                && a.shape() == b.shape()
                && a.dense_bytes().is_some()
                && a.dense_bytes() == b.dense_bytes()
        }
        (Initializer::Strings(a), Initializer::Strings(b)) => a == b,
        (Initializer::Encoded(a), Initializer::Encoded(b)) => {
            a.layout == b.layout && a.logical == b.logical && *a.payload == *b.payload
        }
        _ => false,
    }
}
