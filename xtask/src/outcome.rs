//! What a command ends with: nothing, or every fault it found.

use std::fmt;

/// `Ok`, or all faults found; none where a command has told them itself.
pub(crate) type Outcome = Result<(), Faults>;

/// The faults of one command, each a line or a paragraph for the terminal.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<String>);

impl Faults {
    /// A single fault.
    pub(crate) fn one(fault: impl Into<String>) -> Self {
        Self(vec![fault.into()])
    }

    /// Adds a fault.
    pub(crate) fn push(&mut self, fault: impl Into<String>) {
        self.0.push(fault.into());
    }

    /// Adds a fault at a line (counted from 1) of a file.
    pub(crate) fn at(&mut self, path: &str, line: usize, fault: impl fmt::Display) {
        self.0.push(format!("{path}:{line}: {fault}"));
    }

    /// `Ok` where no fault was pushed.
    pub(crate) fn outcome(self) -> Outcome {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.0 {
            writeln!(f, "error: {fault}")?;
        }
        Ok(())
    }
}

impl From<std::io::Error> for Faults {
    fn from(error: std::io::Error) -> Self {
        Self::one(error.to_string())
    }
}
