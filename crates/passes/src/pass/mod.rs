//! Passes: rewrites of the main graph that change no result.
//!
//! A pass looks at the checked model and gives [`Edits`]; one place applies them, and the outcome is checked as a whole, its
//! bindings included. Inputs, outputs, their types and names, bindings and annotations stay; a pass that would change one
//! of them fails. Every pass is idempotent: a second run finds nothing.

mod common;
mod constants;
mod dead;
mod duplicates;
mod edits;
mod fold;
mod identity;

use heirloom_graph::Model;

use crate::Evaluate;
pub use edits::Edits;
use edits::View;

/// What a pass may use.
pub struct PassCx<'a> {
    /// The model as it is now.
    pub model: &'a Model,
    /// Kernels; `None` where there are none, and nothing is computed.
    pub evaluate: Option<&'a dyn Evaluate>,
    /// A computed constant may have so many bytes, or as many as the constants that it is computed from.
    pub most_bytes: usize,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What holds when it has run.
    pub ensures: &'static str,
    run: fn(&PassCx<'_>, &View<'_>) -> Edits,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pass({})", self.name)
    }
}

/// All passes, in the order in which they help each other.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "identity",
        about: "drops nodes that pass their input on",
        ensures: "no Identity but between a graph's input or constant and its output",
        run: identity::run,
    },
    Pass {
        name: "fold",
        about: "computes what follows from constants and known shapes, within bounds",
        ensures: "no node of constants alone, unless random, too large or without a kernel",
        run: fold::run,
    },
    Pass {
        name: "duplicates",
        about: "keeps one of several constants that mean the same",
        ensures: "no two constants of one type, layout, parameters and payload",
        run: duplicates::run,
    },
    Pass {
        name: "common",
        about: "keeps one of several nodes that compute the same",
        ensures: "no two deterministic nodes of one operator, inputs and attributes",
        run: common::run,
    },
    Pass {
        name: "dead",
        about: "drops nodes and constants that no output depends on",
        ensures: "every node and constant has a reader",
        run: dead::run,
    },
];

/// What one run of a pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// How many nodes it removed.
    pub nodes: usize,
    /// How many constants it removed.
    pub constants: usize,
    /// How many constants it made.
    pub made: usize,
}

/// Why a model could not be rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// What a pass made is refused.
    #[error("pass `{pass}`: {source}")]
    Refused {
        /// The pass.
        pass: &'static str,
        /// Why.
        source: heirloom_graph::Error,
    },
    /// A pass changed what callers see.
    #[error("pass `{pass}` would change {what}")]
    Changed {
        /// The pass.
        pass: &'static str,
        /// What it would change.
        what: &'static str,
    },
}

/// Rounds over all passes; each is idempotent, and what one makes possible for another is seldom deeper.
const MOST_ROUNDS: usize = 8;

/// Runs passes until none finds anything, and reports what each did. A model in which nothing was found is given back as it
/// was, byte for byte.
///
/// # Errors
/// When a pass would change what callers see, or its result is refused: the model stays as it was.
pub fn optimize(
    model: Model,
    passes: &[Pass],
    evaluate: Option<&dyn Evaluate>,
) -> Result<(Model, Vec<PassReport>), PassError> {
    let (mut model, mut reports) = (model, Vec::new());
    for _ in 0..MOST_ROUNDS {
        let before = reports.len();
        for pass in passes {
            let cx = PassCx { model: &model, evaluate, most_bytes: 1 << 16 };
            let edits = (pass.run)(&cx, &View::new(&model));
            if edits.is_empty() {
                continue;
            }
            let (nodes, constants, made) = edits.counts();
            let proto = edits.apply(&model);
            let next = model.with_proto(proto);
            let next = next.map_err(|source| PassError::Refused { pass: pass.name, source })?;
            same_interface(&model, &next).map_err(|what| PassError::Changed { pass: pass.name, what })?;
            reports.push(PassReport { name: pass.name, nodes, constants, made });
            model = next;
        }
        if reports.len() == before {
            break;
        }
    }
    Ok((model, reports))
}

/// What of a model its callers see.
fn same_interface(before: &Model, after: &Model) -> Result<(), &'static str> {
    let (a, b) = (before.proto(), after.proto());
    let (Some(x), Some(y)) = (a.graph(), b.graph()) else { return Err("the graph") };
    let checks = [
        (x.input() == y.input(), "inputs"),
        (x.output() == y.output(), "outputs"),
        (x.persistent_bindings() == y.persistent_bindings(), "bindings"),
        (a.metadata_props() == b.metadata_props(), "annotations"),
        (a.struct_types() == b.struct_types(), "struct types"),
        (before.graph().bindings().len() == after.graph().bindings().len(), "bindings"),
    ];
    match checks.iter().find(|(same, _)| !same) {
        Some((_, what)) => Err(what),
        None => Ok(()),
    }
}
