//! Feed-forward networks.

use heirloom_graph::Var;

use super::{Decoder, Hyper};
use crate::ImportError;

impl Decoder<'_> {
    /// SwiGLU: `down(swish(gate(h)) · up(h))` with this layer's weights; `h` is FLOAT [tokens, width].
    pub(in crate::gguf) fn gated_feed_forward(&mut self, h: &Var) -> Result<Var, ImportError> {
        let Hyper { width, hidden, .. } = self.hyper;
        let gate = self.linear(h, "ffn_gate", hidden, width)?;
        let up = self.linear(h, "ffn_up", hidden, width)?;
        let product = self.add(|g| {
            let gate = g.node("Swish").input(&gate).fresh("ffn_gate.swish")?;
            g.node("Mul").input(&gate).input(&up).fresh("ffn_product")
        })?;
        self.linear(&product, "ffn_down", width, hidden)
    }
}
