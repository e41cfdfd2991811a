//! Llama and the many models of its form (SmolLM2, Mistral, TinyLlama …).

use super::Architecture;
use crate::gguf::decoder::{Attention, Pairs};

/// GGUF files of this architecture have the rows of the query and key weights in an order that makes rotated pairs
/// neighbours.
pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "llama",
    opset: 24,
    build: |decoder| {
        let rope = decoder.rope(Pairs::Adjacent)?;
        decoder.pre_norm(&Attention::new(&rope))
    },
};
