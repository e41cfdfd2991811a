//! The rules by which operators' outputs follow from their inputs. One table for each family.

mod attention;
mod compute;
mod conv;
mod cx;
mod elementwise;
mod gather;
mod heirloom;
mod matrix;
mod ml;
mod movement;
mod pad_slice;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod selection;
mod sequence;
mod shape;
mod signal;
mod text;

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

pub(crate) use cx::{Cx, Stop, better};
pub(crate) use sequence::common as sequence_common;

/// How a rule ended. Outputs that it did not set stay unknown.
pub(crate) type Outcome = Result<(), Stop>;

/// Infers the outputs of a node from its inputs.
pub(crate) type Infer = fn(&mut Cx<'_>) -> Outcome;

/// One operator and its rule.
pub(crate) type Rule = (&'static str, Infer);

/// A family: the domain of its operators, and the operators.
type Family = (&'static str, &'static [Rule]);

const FAMILIES: &[Family] = &[
    ("", attention::RULES),
    ("com.microsoft", attention::MICROSOFT),
    ("ai.onnx.preview", attention::PREVIEW),
    ("", conv::RULES),
    ("com.microsoft", conv::MICROSOFT),
    ("", elementwise::RULES),
    ("com.microsoft", elementwise::MICROSOFT),
    ("", gather::RULES),
    ("com.microsoft", gather::MICROSOFT),
    ("ai.heirloom", heirloom::RULES),
    ("", matrix::RULES),
    ("com.microsoft", matrix::MICROSOFT),
    ("ai.onnx.ml", ml::RULES),
    ("", movement::RULES),
    ("", pad_slice::RULES),
    ("", pool::RULES),
    ("", quantize::RULES),
    ("com.microsoft", quantize::MICROSOFT),
    ("", random::RULES),
    ("", recurrent::RULES),
    ("com.microsoft", recurrent::MICROSOFT),
    ("", reduce::RULES),
    ("", resize::RULES),
    ("", selection::RULES),
    ("", sequence::RULES),
    ("", shape::RULES),
    ("", signal::RULES),
    ("", text::RULES),
];

/// The rule of an operator; the domain is empty for ai.onnx.
pub(crate) fn of(domain: &str, op: &str) -> Option<Infer> {
    static TABLE: OnceLock<FxHashMap<(&'static str, &'static str), Infer>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let rules = FAMILIES.iter().flat_map(|(domain, rules)| rules.iter().map(move |rule| (*domain, rule)));
        rules.map(|(domain, (op, infer))| ((domain, *op), *infer)).collect()
    });
    table.get(&(domain, op)).copied()
}

/// All operators that have a rule, as domain and name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.iter().flat_map(|(domain, rules)| rules.iter().map(move |(op, _)| (*domain, *op)))
}
