//! Passes: rewrites of a model that change no result.
//!
//! A pass looks at each graph of the checked model, the main one, bodies and functions, and gives its [`Edits`]; one place
//! applies them, and the outcome is checked as a whole, its bindings included. Inputs, outputs, their types and names,
//! bindings and annotations stay; a pass that would change one of them fails. Every pass is idempotent: a second run finds
//! nothing. A new pass is a file and a line in [`PASSES`], which enrols it in the tests.

mod apply;
mod codes;
mod common;
mod constants;
mod dead;
mod duplicates;
mod edits;
mod fold;
mod fuse;
mod identity;
mod inline;
mod lift;
mod movement;
mod quantized;
mod view;

use std::cell::RefCell;

use heirloom_graph::Model;
use heirloom_infer::{InferOptions, ShapesContext};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Evaluate;
use crate::message;
pub use edits::Edits;
use view::{Place, View};

/// What a pass may use.
pub struct PassCx<'a> {
    /// The model as it is now.
    pub model: &'a Model,
    /// Kernels; `None` where there are none, and nothing is computed.
    pub evaluate: Option<&'a dyn Evaluate>,
    /// A computed constant may have so many bytes, or as many as the constants that it is computed from.
    pub most_bytes: usize,
    /// Names that are taken, once a pass asks for a new one.
    names: RefCell<Option<FxHashSet<String>>>,
    /// How far the standard operators of the main graph and of each function can be raised.
    reach: FxHashMap<Option<usize>, i64>,
}

impl<'a> PassCx<'a> {
    fn new(model: &'a Model, evaluate: Option<&'a dyn Evaluate>) -> PassCx<'a> {
        let (names, reach) = (RefCell::default(), FxHashMap::default());
        PassCx { model, evaluate, most_bytes: 1 << 16, names, reach }
    }

    /// A name that nothing in the model has.
    fn fresh(&self, base: &str, part: &str) -> String {
        let mut names = self.names.borrow_mut();
        let names = names.get_or_insert_with(|| {
            let mut names = FxHashSet::default();
            message::all_names(self.model.graph(), &mut names);
            self.model.functions().iter().for_each(|it| message::all_names(it.body(), &mut names));
            names
        });
        message::fresh(names, base, part)
    }

    /// Whether the operators of a view are of a version, or can be raised to it.
    fn can(&self, view: &View<'_>, version: i64) -> bool {
        let reach = self.reach.get(&view.place.function).copied();
        view.opset() >= version || reach.is_some_and(|reach| reach >= version)
    }
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
    /// Whether results stay the same to the bit; else sums and roundings come in another order.
    pub exact: bool,
    /// Whether it runs unless others are named.
    pub by_default: bool,
    /// Whether it asks for types and shapes.
    infers: bool,
    /// Whether it may raise the version of the standard operators.
    raises: bool,
    run: fn(&PassCx<'_>, &View<'_>) -> Edits,
}

impl Pass {
    const fn new(
        name: &'static str,
        run: fn(&PassCx<'_>, &View<'_>) -> Edits,
        about: &'static str,
        ensures: &'static str,
    ) -> Pass {
        Pass { name, about, ensures, exact: true, by_default: true, infers: false, raises: false, run }
    }

    const fn inferring(self) -> Pass {
        Pass { infers: true, ..self }
    }

    const fn rounding(self) -> Pass {
        Pass { exact: false, ..self.raising() }
    }

    const fn raising(self) -> Pass {
        Pass { infers: true, raises: true, ..self }
    }

    const fn when_named(self) -> Pass {
        Pass { by_default: false, ..self }
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pass({})", self.name)
    }
}

/// All passes, in the order in which they help each other.
pub const PASSES: &[Pass] = &[
    Pass::new(
        "inline",
        inline::run,
        "puts the bodies of functions in the place of calls",
        "no node calls a function of the model, unless their operator sets cannot be brought together",
    )
    .raising(),
    Pass::new(
        "identity",
        identity::run,
        "drops nodes that pass their input on",
        "no Identity but between a graph's input or constant and its output",
    ),
    Pass::new(
        "fold",
        fold::run,
        "computes what follows from constants and known shapes, within bounds",
        "no node of constants alone, unless random, too large or without a kernel",
    )
    .inferring(),
    Pass::new(
        "movement",
        movement::run,
        "merges transposes and reshapes behind each other, and drops those that move nothing",
        "no two Transpose or Reshape nodes that one could be, and none that keeps the shape",
    )
    .inferring(),
    Pass::new(
        "duplicates",
        duplicates::run,
        "keeps one of several constants that mean the same",
        "no two constants of one graph with one type, layout, parameters and payload",
    ),
    Pass::new(
        "common",
        common::run,
        "keeps one of several nodes that compute the same",
        "no two deterministic nodes of one graph with one operator, inputs and attributes",
    ),
    Pass::new(
        "codes",
        codes::run,
        "recognizes DequantizeLinear of constant codes that are cast and multiplied by scales",
        "no DequantizeLinear of INT8 constants that is written out",
    )
    .raising(),
    Pass::new(
        "n-bits",
        quantized::n_bits,
        "makes the weights of MatMulNBits affine encoded values",
        "no MatMulNBits whose constants the affine layout can hold",
    )
    .rounding(),
    Pass::new(
        "dequantize",
        quantized::dequantize,
        "makes weights that DequantizeLinear expands affine encoded values over the same codes",
        "no DequantizeLinear of constants that only products and look-ups read",
    )
    .rounding()
    .when_named(),
    Pass::new("gelu", fuse::gelu::run, "recognizes Gelu, by erf or tanh", "no Gelu that is written out")
        .rounding(),
    Pass::new(
        "swish",
        fuse::swish::run,
        "recognizes x * sigmoid(x), which is Swish",
        "no Swish that is written out",
    )
    .rounding(),
    Pass::new(
        "hard-swish",
        fuse::hard::run,
        "recognizes HardSwish and HardSigmoid that Clip is part of",
        "no HardSwish or HardSigmoid that is written out",
    )
    .rounding(),
    Pass::new(
        "layer-norm",
        fuse::layer_norm::run,
        "recognizes LayerNormalization",
        "no LayerNormalization with a scale that is written out",
    )
    .rounding(),
    Pass::new(
        "rms-norm",
        fuse::rms_norm::run,
        "recognizes RMSNormalization",
        "no RMSNormalization with a scale that is written out",
    )
    .rounding(),
    Pass::new(
        "rotary",
        fuse::rotary::run,
        "recognizes RotaryEmbedding of neighbours or halves",
        "no RotaryEmbedding that is written out",
    )
    .rounding(),
    Pass::new(
        "attention",
        fuse::attention::run,
        "recognizes Attention over a cache that grows",
        "no attention without a mask over a growing cache that is written out",
    )
    .rounding(),
    Pass::new(
        "dead",
        dead::run,
        "drops nodes, constants and functions that no output depends on",
        "every node, constant and function has a reader",
    ),
];

/// What one run of a pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// How many nodes went.
    pub nodes: usize,
    /// How many nodes stand in their place.
    pub put: usize,
    /// How many constants it removed.
    pub constants: usize,
    /// How many constants it made.
    pub made: usize,
    /// The version that it raised the standard operators to.
    pub opset: Option<i64>,
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

/// Times that a pass is run on its own result: what it merged may be a part of more.
const MOST_REPEATS: usize = 64;

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
    let mut work = Work { model, shapes: None, evaluate, reports: Vec::new() };
    for _ in 0..MOST_ROUNDS {
        let before = work.reports.len();
        for pass in passes {
            for _ in 0..MOST_REPEATS {
                if !work.run(pass)? {
                    break;
                }
            }
        }
        if work.reports.len() == before {
            break;
        }
    }
    Ok((work.model, work.reports))
}

struct Work<'e> {
    model: Model,
    /// What is inferred of the model as it is.
    shapes: Option<ShapesContext>,
    evaluate: Option<&'e dyn Evaluate>,
    reports: Vec<PassReport>,
}

impl Work<'_> {
    fn infer(&mut self) {
        if self.shapes.is_none() {
            self.shapes = Some(ShapesContext::infer(&self.model, &InferOptions::default()));
        }
    }

    /// Runs a pass once; whether it found something.
    fn run(&mut self, pass: &Pass) -> Result<bool, PassError> {
        if pass.infers {
            self.infer();
        }
        let mut cx = PassCx::new(&self.model, self.evaluate);
        if let (Some(shapes), true) = (&self.shapes, pass.raises) {
            cx.reach = lift::reach(&cx, shapes);
        }
        let mut all = collect(pass, &cx, self.shapes.as_ref());
        if all.is_empty() {
            return Ok(false);
        }
        let wanted = lift::wanted(&self.model, &all);
        let mut opset = None;
        let raised = match &self.shapes {
            Some(shapes) if !wanted.is_empty() => lift::lift(&cx, shapes, &wanted),
            _ => None,
        };
        let base = match raised {
            None => None,
            Some(proto) => {
                opset = wanted.get(&None).copied().or_else(|| wanted.values().copied().max());
                let raised = checked(&self.model, pass, self.model.with_proto(proto))?;
                let shapes = ShapesContext::infer(&raised, &InferOptions::default());
                all = collect(pass, &PassCx::new(&raised, self.evaluate), Some(&shapes));
                Some(raised)
            }
        };
        if all.is_empty() {
            return Ok(false);
        }
        let base = base.as_ref().unwrap_or(&self.model);
        let next = checked(base, pass, base.with_proto(apply::apply(base, &all)))?;
        let sum = |count: fn(&Edits) -> usize| all.iter().map(|(_, edits)| count(edits)).sum();
        self.reports.push(PassReport {
            name: pass.name,
            nodes: sum(|it| it.nodes.len()),
            put: sum(|it| it.nodes.values().map(Vec::len).sum()),
            constants: sum(|it| it.constants.len()),
            made: sum(|it| it.made.len() + it.encoded.len()),
            opset,
        });
        self.model = next;
        self.shapes = None;
        Ok(true)
    }
}

fn collect(pass: &Pass, cx: &PassCx<'_>, shapes: Option<&ShapesContext>) -> Vec<(Place, Edits)> {
    let mut all = Vec::new();
    view::each(cx.model, shapes, &mut |view| {
        let edits = (pass.run)(cx, view);
        if !edits.is_empty() {
            all.push((view.place.clone(), edits));
        }
    });
    all
}

/// The model that came out, if it is one and callers see the same.
fn checked(
    before: &Model,
    pass: &Pass,
    after: Result<Model, heirloom_graph::Error>,
) -> Result<Model, PassError> {
    let after = after.map_err(|source| PassError::Refused { pass: pass.name, source })?;
    same_interface(before, &after).map_err(|what| PassError::Changed { pass: pass.name, what })?;
    Ok(after)
}

/// What of a model its callers see.
fn same_interface(before: &Model, after: &Model) -> Result<(), &'static str> {
    let (a, b) = (before.proto(), after.proto());
    let (Some(x), Some(y)) = (a.graph(), b.graph()) else { return Err("the graph") };
    let checks = [
        (x.input() == y.input(), "inputs"),
        (x.output() == y.output(), "outputs"),
        (x.persistent_bindings() == y.persistent_bindings(), "bindings"),
        (x.quantization_annotation() == y.quantization_annotation(), "annotations of quantized values"),
        (a.metadata_props() == b.metadata_props(), "annotations"),
        (a.struct_types() == b.struct_types(), "struct types"),
        (before.graph().bindings().len() == after.graph().bindings().len(), "bindings"),
    ];
    match checks.iter().find(|(same, _)| !same) {
        Some((_, what)) => Err(what),
        None => Ok(()),
    }
}
