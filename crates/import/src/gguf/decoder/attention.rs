//! Attention over the cache.

use heirloom_graph::{Error, GraphBuilder, Var};
use heirloom_mem::DType;

use super::hyper::signed;
use super::{Decoder, Hyper, Rope};
use crate::ImportError;

/// How the layers of an architecture attend.
pub(in crate::gguf) struct Attention<'r> {
    /// The angles of queries and keys.
    pub(in crate::gguf) rope: &'r Rope,
    /// Each head of queries and keys is normalized, with the weights `attn_q_norm` and `attn_k_norm`.
    pub(in crate::gguf) head_norms: bool,
    /// How many tokens a query sees, itself included; `None` is all up to itself.
    pub(in crate::gguf) window: Option<usize>,
    /// What scores are multiplied by; `None` is 1 / √size.
    pub(in crate::gguf) scale: Option<f64>,
}

impl<'r> Attention<'r> {
    /// The usual: no norms, no window, scores divided by the root of the head's size.
    pub(in crate::gguf) fn new(rope: &'r Rope) -> Self {
        Self { rope, head_norms: false, window: None, scale: None }
    }
}

impl Decoder<'_> {
    /// The attention of layer `index` over `h`, FLOAT [tokens, width]: projections with the file's biases, norms if
    /// any, rotation of queries and keys, causal attention over the cache and the new tokens, output projection. The
    /// caches become outputs that feed the next call.
    pub(in crate::gguf) fn attention(
        &mut self,
        h: &Var,
        index: usize,
        form: &Attention<'_>,
    ) -> Result<Var, ImportError> {
        let Hyper { width, heads, kv_heads, value_size, .. } = self.hyper;
        let query = self.turned(h, "attn_q", "query", heads, form)?;
        let key = self.turned(h, "attn_k", "key", kv_heads, form)?;
        let value = self.linear(h, "attn_v", kv_heads * value_size, width)?;
        let value = self.batched(&value, kv_heads * value_size, "value")?;
        let attended = self.attend([query, key, value], index, form)?;
        let rows = self.flat(&attended, heads * value_size, "attended.rows")?;
        self.linear(&rows, "attn_output", width, heads * value_size)
    }

    /// Queries or keys: projected, normalized if asked for, rotated; FLOAT [batch, sequence, heads · key_size].
    fn turned(
        &mut self,
        h: &Var,
        weight: &str,
        name: &str,
        heads: usize,
        form: &Attention<'_>,
    ) -> Result<Var, ImportError> {
        let Hyper { width, key_size, .. } = self.hyper;
        let mut x = self.linear(h, weight, heads * key_size, width)?;
        if form.head_norms {
            let rows = self.flat(&x, key_size, &format!("{name}.heads"))?;
            x = self.norm_of(&rows, &format!("{weight}_norm"), key_size)?;
        }
        let x = self.batched(&x, heads * key_size, name)?;
        self.rotate(&x, heads, form.rope, &format!("{name}.turned"))
    }

    /// Softmax(query · keysᵀ · scale) · values for queries that see the cache and the tokens up to their own, or a
    /// window of them; FLOAT [batch, sequence, heads · value_size].
    fn attend(&mut self, qkv: [Var; 3], index: usize, form: &Attention<'_>) -> Result<Var, ImportError> {
        let Hyper { heads, kv_heads, .. } = self.hyper;
        let cache = self.cache.dtype();
        let past = self.past(index);
        let (present_key, present_value) = (format!("present.{index}.key"), format!("present.{index}.value"));
        let (wide, present) = self.add(|g| {
            let mut narrow = Vec::with_capacity(3);
            for (x, name) in qkv.iter().zip(["query", "key", "value"]) {
                narrow.push(cast(g, x, DType::Float, cache, &format!("{name}.cached"))?);
            }
            let attended = g.unique("attended");
            let node = g.node("Attention").inputs(&narrow).skip().inputs(&past);
            let node = node.attr("is_causal", 1).attr("softmax_precision", DType::Float.onnx());
            let node = node.attr("q_num_heads", signed(heads)).attr("kv_num_heads", signed(kv_heads));
            let node = match form.window {
                // The attribute counts the tokens before the query's own.
                Some(window) => node.attr("left_window_size", signed(window) - 1),
                None => node,
            };
            let node = if let Some(scale) = form.scale { node.attr("scale", scale) } else { node };
            let [attended, key, value] = node.outputs([&attended, &present_key, &present_value])?;
            Ok((cast(g, &attended, cache, DType::Float, "attended.wide")?, [key, value]))
        })?;
        self.retain(index, &present)?;
        Ok(wide)
    }
}

/// The value `x` of type `from` as one of type `to`.
fn cast(graph: &mut GraphBuilder, x: &Var, from: DType, to: DType, name: &str) -> Result<Var, Error> {
    if from == to {
        return Ok(x.clone());
    }
    graph.node("Cast").input(x).attr("to", to.onnx()).fresh(name)
}
