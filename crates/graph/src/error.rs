//! Why a model is refused, and where in it the fault lies.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use heirloom_mem::Shape;
use heirloom_types::TensorType;

use crate::Problem;

/// A fault of a model and where it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The way through the messages, such as `graph.node[3].attribute[0].g.input[1].type`; may be empty.
    pub path: String,
    /// What is wrong there.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "{}", self.problem)
        } else {
            write!(f, "`{}`: {}", self.path, self.problem)
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

/// All faults that were found; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults(pub Vec<Fault>);

/// A message shows so many faults.
const SHOWN: usize = 3;

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{fault}", if i == 0 { "" } else { "\n" })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more; `verify` tells them all"),
        }
    }
}

impl std::error::Error for Faults {}

/// A payload that was not at hand when its model was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// The constant's name.
    pub name: String,
    /// The file that holds the payload, relative to the model's folder.
    pub location: String,
    /// Why it is not at hand, and what to do.
    pub reason: String,
    /// The (logical) type of the constant, where it has one.
    pub logical: Option<TensorType>,
}

/// Everything that opening, building, editing and saving models can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file or the bytes could not be read, or not written.
    #[error(transparent)]
    Proto(#[from] heirloom_proto::Error),
    /// The model breaks rules.
    #[error("{} is no valid model:\n{faults}", model_name(file))]
    Invalid {
        /// The file, where there is one.
        file: Option<PathBuf>,
        /// What is wrong with it.
        faults: Faults,
    },
    /// The model's folder, or one that links may lead into, is not there.
    #[error("{source}")]
    Folder {
        /// Which folder, and the system's reason.
        source: heirloom_proto::ExternalError,
    },
    /// A payload is needed that is not at hand.
    #[error("the payload of `{}` in `{}` is not at hand: {}", .0.name, .0.location, .0.reason)]
    Unavailable(Arc<Unavailable>),
    /// A sparse constant is used where a value is needed.
    #[error("a sparse constant {shape:?} cannot be used as a value: make it dense first")]
    SparseValue {
        /// Its dense shape.
        shape: Shape,
    },
    /// A call that builds or edits a model is wrong.
    #[error("{call}: {problem}")]
    Call {
        /// What was being added or changed, such as ``node `Gemm` ``.
        call: String,
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// A model with external payloads is to be saved where they cannot be reached.
    #[error(
        "`{}` refers to `{location}` beside it, which is not the file that the model was read with: save into the \
         same folder, or write the payloads out (`External::File` or `External::Inline`)",
        path.display()
    )]
    ExternalElsewhere {
        /// Where the model was to be saved.
        path: PathBuf,
        /// The file of payloads.
        location: String,
    },
    /// A file of payloads could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn call(call: impl Into<String>, problem: Problem) -> Error {
        Error::Call { call: call.into(), problem: Box::new(problem) }
    }
}

fn model_name(file: &Option<PathBuf>) -> String {
    file.as_ref().map_or_else(|| "this".into(), |file| format!("`{}`", file.display()))
}
