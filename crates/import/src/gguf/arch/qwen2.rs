//! Qwen 2 and 2.5: Llama's form with biases on query, key and value.

use super::Architecture;
use crate::gguf::decoder::{Attention, Pairs};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen2",
    opset: 24,
    build: |decoder| {
        let rope = decoder.rope(Pairs::Halves)?;
        decoder.pre_norm(&Attention::new(&rope))
    },
};
