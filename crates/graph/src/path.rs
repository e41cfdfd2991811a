//! The way to a part of a model, written out only when something is wrong there, and the faults found so far.

use std::fmt;

use heirloom_types::TypeError;

use crate::{Fault, Problem};

/// A part of a model by the fields that lead to it.
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: &'static str,
    index: Option<usize>,
}

impl<'a> Path<'a> {
    /// The whole model.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: "", index: None };

    /// A field of the part.
    pub(crate) fn field(&'a self, step: &'static str) -> Path<'a> {
        Path { parent: Some(self), step, index: None }
    }

    /// An element of a repeated field of the part.
    pub(crate) fn index(&'a self, step: &'static str, index: usize) -> Path<'a> {
        Path { parent: Some(self), step, index: Some(index) }
    }

    /// The path with a path of another crate behind it.
    pub(crate) fn join(&self, rest: &str) -> String {
        let path = self.to_string();
        match (path.is_empty(), rest.is_empty()) {
            (_, true) => path,
            (true, false) => rest.into(),
            (false, false) if rest.starts_with('[') => format!("{path}{rest}"),
            (false, false) => format!("{path}.{rest}"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        write!(f, "{parent}{}{}", if parent.parent.is_some() { "." } else { "" }, self.step)?;
        match self.index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}

/// The faults found so far.
#[derive(Default)]
pub(crate) struct FaultList {
    faults: Vec<Fault>,
    is_full: bool,
}

/// A damaged file can have a fault in every byte; nobody reads more than these.
const LIMIT: usize = 1000;

impl FaultList {
    pub(crate) fn push(&mut self, path: &Path<'_>, problem: Problem) {
        if !self.is_full {
            self.push_at(path.to_string(), problem);
        }
    }

    pub(crate) fn push_at(&mut self, path: String, problem: Problem) {
        if self.is_full {
            return;
        }
        if self.faults.len() == LIMIT {
            self.is_full = true;
            self.faults.push(Fault { path: String::new(), problem: Problem::More { limit: LIMIT } });
            return;
        }
        self.faults.push(Fault { path, problem });
    }

    /// Adds faults of types.
    pub(crate) fn extend_types(&mut self, path: &Path<'_>, faults: Vec<heirloom_types::Fault>) {
        for heirloom_types::Fault { path: rest, error } in faults {
            match error {
                TypeError::Tensor(error) => self.push_at(path.join(&rest), Problem::Tensor(error)),
                error => self.push_at(path.join(&rest), Problem::Type(error)),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.faults
    }
}
