//! Writing models in Rust: what is wrong is said by the call that is wrong.

mod attr;
mod body;
mod constants;
mod function;
mod model;
mod node;
mod scope;

pub use attr::Attr;
pub use body::{GraphBuilder, Var};
pub use constants::PayloadSource;
pub use function::FunctionBuilder;
pub use model::ModelBuilder;
pub use node::NodeBuilder;
