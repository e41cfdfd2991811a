//! Language models: prompts in, tokens out, over a state that the model file declares.
//!
//! ```no_run
//! use heirloom::llm::{LanguageModel, LlmOptions, Request};
//!
//! let model = LanguageModel::open("smollm2.onnx", &LlmOptions::default())?;
//! let mut conversation = model.conversation()?;
//! let prompt = model.encode_prompt("Why is the sky blue?")?;
//! for token in conversation.generate(&prompt, &Request { max_tokens: 64, ..Request::default() })? {
//!     print!("{}", token?.text);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contained;
mod conversation;
mod error;
mod generate;
mod model;
mod sampling;
mod text;

pub use contained::import_contained;
pub use conversation::Conversation;
pub use error::LlmError;
pub use generate::{Generation, GenerationReport, Request, StopReason, Token, TokenText};
pub use model::{LanguageModel, LlmOptions};
pub use sampling::{Sampler, Sampling};
