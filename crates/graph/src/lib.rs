//! Models: the graph IR, opening and saving, building, editing, verification, reports and persistent bindings.
#![forbid(unsafe_code)]

mod agree;
mod bindings;
mod build;
mod calls;
mod edit;
mod error;
mod function;
mod graph;
mod import;
pub mod inspect;
mod model;
mod names;
mod node;
mod order;
mod path;
mod payload;
mod payloads;
mod problem;
mod save;
mod sparse;
mod verify;

pub use bindings::binding_problems;
pub use build::{Attr, FunctionBuilder, GraphBuilder, ModelBuilder, NodeBuilder, PayloadSource, Var};
pub use edit::Edit;
pub use error::{Error, Fault, Faults, Unavailable};
pub use function::{Function, Opsets};
pub use graph::{Binding, Capture, Graph, Initializer, SparseTensor};
pub use inspect::{Inspection, inspect};
pub use model::{Model, OpenOptions};
pub use node::{AttrError, AttrValue, Attributes, Node, NodeId, ValueId};
pub use problem::Problem;
pub use save::{External, PayloadFile, SaveOptions, save_proto};
pub use verify::{verify, verify_file};
