//! Where two things that a model says of one extent or type cannot both hold.

use std::fmt;

/// A contradiction, with both of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The graph: empty for the main one, else the way to it.
    pub graph: String,
    /// The node where the two meet, with its operator.
    pub node: String,
    /// What contradicts what.
    pub kind: ConflictKind,
}

/// What contradicts what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictKind {
    /// A value's declaration and what the node makes.
    Declared {
        /// The value.
        value: String,
        /// Its declared type.
        declared: String,
        /// What the node makes of its inputs.
        inferred: String,
    },
    /// Two inputs that do not fit each other.
    Inputs {
        /// What must hold.
        what: &'static str,
        /// One of them, with its type.
        first: Source,
        /// The other.
        second: Source,
    },
    /// An input and what its operator takes.
    Operator {
        /// The input with its type.
        input: Source,
        /// What the operator takes, and what it was given.
        reason: String,
    },
}

/// A value and what is known of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The value's name.
    pub value: String,
    /// Its type.
    pub ty: String,
    /// The axis in question.
    pub axis: Option<usize>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(axis) = self.axis {
            write!(f, "axis {axis} of ")?;
        }
        write!(f, "`{}` ({})", self.value, self.ty)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.graph.is_empty() {
            write!(f, "{}: ", self.graph)?;
        }
        match &self.kind {
            ConflictKind::Declared { value, declared, inferred } => {
                write!(f, "`{value}` is declared {declared}, but {} makes {inferred}", self.node)
            }
            ConflictKind::Inputs { what, first, second } => {
                write!(f, "{}: {what}, but {first} and {second} differ", self.node)
            }
            ConflictKind::Operator { input, reason } => write!(f, "{}: {input}: {reason}", self.node),
        }
    }
}

impl std::error::Error for Conflict {}
