//! Why an encoded value could not be decoded.

use std::time::Duration;

use heirloom_mem::DType;

use crate::{BuildError, KernelError, SessionError};

/// Why an encoded value could not be decoded. `ty` is its layout, with the struct type's name and id.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The value stands for no tensor.
    #[error("`{value}` ({ty}) has no logical type: read its records by field")]
    NoLogicalType {
        /// The value's name.
        value: String,
        /// Its layout.
        ty: String,
    },
    /// No codec is registered for the layout.
    #[error("`{value}`: no codec is registered for {ty}")]
    NoCodec {
        /// The value's name.
        value: String,
        /// Its layout.
        ty: String,
    },
    /// The declaration brings no decoder.
    #[error("`{value}`: the declaration of {ty} has no decoder")]
    NoDecoder {
        /// The value's name.
        value: String,
        /// Its layout.
        ty: String,
    },
    /// No codec is registered, and the declaration brings no decoder either.
    #[error(
        "`{value}`: no codec is registered for {ty}, and its declaration has no decoder; register a codec, or read its \
         records by field"
    )]
    Undecodable {
        /// The value's name.
        value: String,
        /// Its layout.
        ty: String,
    },
    /// The kernel of the codec could not be made.
    #[error("`{value}` ({ty}): {source}")]
    Build {
        /// The value's name.
        value: String,
        /// Its layout.
        ty: String,
        /// Why.
        source: BuildError,
    },
    /// The decoder is no well-formed function.
    #[error("the decoder of {ty} is malformed: {source}")]
    Malformed {
        /// The layout.
        ty: String,
        /// Its faults.
        source: Box<heirloom_graph::Error>,
    },
    /// The decoder takes or gives another number of values.
    #[error("the decoder of {ty} has {inputs} inputs and {outputs} outputs; it must have one of each")]
    Signature {
        /// The layout.
        ty: String,
        /// Inputs that it has.
        inputs: usize,
        /// Outputs that it has.
        outputs: usize,
    },
    /// The decoder has nodes that nothing here can compute.
    #[error("the decoder of {ty} cannot be run: {source}")]
    Bind {
        /// The layout.
        ty: String,
        /// Why not.
        source: Box<SessionError>,
    },
    /// A node of the decoder failed, or would have used more than the limits allow.
    #[error("the decoder of {ty}, applied to `{value}`, failed at node `{node}` ({op}): {source}")]
    Node {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// Why.
        source: Box<KernelError>,
    },
    /// The decoder took longer than it may.
    #[error("the decoder of {ty}, applied to `{value}`, was stopped at node `{node}` after {limit:?}")]
    Time {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// The node that was about to run or running.
        node: String,
        /// The time it may take.
        limit: Duration,
    },
    /// The decoder gave something else than a tensor.
    #[error("the decoder of {ty}, applied to `{value}`, gave a {actual}, not a tensor")]
    Kind {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// What it gave.
        actual: &'static str,
    },
    /// The decoder gave elements of another type.
    #[error(
        "the decoder of {ty}, applied to `{value}`, gave {actual} elements; the logical type has {expected}"
    )]
    DType {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// The logical element type.
        expected: DType,
        /// What it gave.
        actual: DType,
    },
    /// The decoder gave a tensor of another shape.
    #[error(
        "the decoder of {ty}, applied to `{value}`, gave shape {actual:?}; it must be [records, elements of a record], \
         here with {records} records, and fill the logical shape {logical:?}"
    )]
    Shape {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// Records of the value.
        records: usize,
        /// The logical shape.
        logical: Vec<usize>,
        /// The decoder's.
        actual: Vec<usize>,
    },
    /// A codec failed.
    #[error("`{value}` ({ty}): {source}")]
    Codec {
        /// The value's name.
        value: String,
        /// The layout.
        ty: String,
        /// Why.
        source: Box<KernelError>,
    },
    /// The token stopped it.
    #[error("decoding `{value}` was cancelled")]
    Cancelled {
        /// The value's name.
        value: String,
    },
}
