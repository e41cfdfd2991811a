//! Qwen 3: Llama's form with a norm on each head of queries and keys.

use super::Architecture;
use crate::gguf::decoder::{Attention, Pairs};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3",
    opset: 24,
    build: |decoder| {
        let rope = decoder.rope(Pairs::Halves)?;
        decoder.pre_norm(&Attention { head_norms: true, ..Attention::new(&rope) })
    },
};
