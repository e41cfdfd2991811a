//! The way to a place in nested messages, written out only where a fault is found.

use crate::{Fault, TypeError};

/// How many faults are listed at most.
pub(crate) const MOST_FAULTS: usize = 10_000;

/// One step of the way, and the steps before it.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    before: Option<&'a Path<'a>>,
    name: &'a str,
    index: Option<usize>,
}

impl<'a> Path<'a> {
    pub(crate) fn root(name: &'a str) -> Path<'a> {
        Path { before: None, name, index: None }
    }

    pub(crate) fn element_of(name: &'a str, index: usize) -> Path<'a> {
        Path { before: None, name, index: Some(index) }
    }

    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { before: Some(self), name, index: None }
    }

    pub(crate) fn element(&'a self, name: &'a str, index: usize) -> Path<'a> {
        Path { before: Some(self), name, index: Some(index) }
    }
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(before) = self.before {
            write!(f, "{before}")?;
            if !before.is_nothing() {
                f.write_str(".")?;
            }
        }
        f.write_str(self.name)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

impl Path<'_> {
    fn is_nothing(&self) -> bool {
        self.name.is_empty() && self.before.is_none()
    }
}

/// Faults as they are found.
#[derive(Default)]
pub(crate) struct FaultList(Vec<Fault>);

impl FaultList {
    pub(crate) fn add(&mut self, path: &Path<'_>, error: impl Into<TypeError>) {
        if self.0.len() < MOST_FAULTS {
            self.0.push(Fault { path: path.to_string(), error: error.into() });
        } else if self.0.len() == MOST_FAULTS {
            self.0.push(TypeError::More { limit: MOST_FAULTS }.into());
        }
    }

    /// The value of a result, or its error noted.
    pub(crate) fn note<T>(&mut self, path: &Path<'_>, result: Result<T, impl Into<TypeError>>) -> Option<T> {
        result.map_err(|error| self.add(path, error)).ok()
    }

    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.0
    }
}
