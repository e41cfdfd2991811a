//! What the crate refuses.

/// Why a type of a family cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A parameter that the format does not have.
    #[error("{format}: `{parameter}` is {value}; it must be {expected}")]
    Parameter {
        /// The family.
        format: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: String,
        /// What is possible.
        expected: &'static str,
    },
}
