//! Feed-forward networks.

use heirloom_graph::Var;

use super::{Decoder, Hyper};
use crate::ImportError;

/// What a gate goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gguf) enum Activation {
    /// `x · sigmoid(x)`; with a gate SwiGLU.
    Swish,
    /// GELU by its tanh formula; with a gate GeGLU.
    GeluTanh,
}

impl Decoder<'_> {
    /// `down(activation(gate(h)) · up(h))` with this layer's weights; `h` is FLOAT [tokens, width].
    pub(in crate::gguf) fn gated_feed_forward(
        &mut self,
        h: &Var,
        activation: Activation,
    ) -> Result<Var, ImportError> {
        let Hyper { width, hidden, .. } = self.hyper;
        let gate = self.linear(h, "ffn_gate", hidden, width)?;
        let up = self.linear(h, "ffn_up", hidden, width)?;
        let product = self.add(|g| {
            let node = match activation {
                Activation::Swish => g.node("Swish").input(&gate),
                Activation::GeluTanh => g.node("Gelu").input(&gate).attr("approximate", "tanh"),
            };
            let gate = node.fresh("ffn_gate.active")?;
            g.node("Mul").input(&gate).input(&up).fresh("ffn_product")
        })?;
        self.linear(&product, "ffn_down", width, hidden)
    }
}
