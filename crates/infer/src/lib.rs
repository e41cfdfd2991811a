//! The type and the symbolic shape of every value of a model, in its graph, bodies and functions.
//!
//! [`ShapesContext::infer`] is the one place that knows them: extents are [expressions](Expr) over the symbols that the
//! model declares for its inputs (`past + new`), small tensors that shapes are computed with are followed element by
//! element, structs have the types of their fields, and encoded constants their layout beside the type that operators
//! see. What a model declares for values in between is used where nothing else tells, and held against what follows from
//! the inputs: a [`Conflict`] names both.
//!
//! An operator's rule is a function in the file of its family under `rules`, and a line in that family's table. Rules
//! stand here and not beside the kernels, since builders, passes and reports need them without any kernel.
#![forbid(unsafe_code)]

mod conflict;
mod context;
mod control;
mod expr;
mod fact;
mod merge;
mod rules;
mod walk;

pub use conflict::{Conflict, ConflictKind, Source};
pub use context::{InferOptions, Scope, ShapesContext};
pub use expr::Expr;
pub use fact::{Dim, Elem, Fact, Physical, TensorFact, Type};

pub(crate) use fact::MOST_ELEMS;

/// All operators that have a rule, as domain (empty for ai.onnx) and name.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::all()
}
