//! Attention over the cache.

use heirloom_graph::Var;
use heirloom_mem::DType;

use super::hyper::signed;
use super::{Decoder, Hyper, Rope};
use crate::ImportError;

impl Decoder<'_> {
    /// The attention of layer `index` over `h`, FLOAT [tokens, width]: projections with the file's biases, rotation of
    /// queries and keys, causal attention over the cache and the new tokens, output projection. The caches become
    /// outputs that feed the next call.
    pub(in crate::gguf) fn attention(
        &mut self,
        h: &Var,
        index: usize,
        rope: &Rope,
    ) -> Result<Var, ImportError> {
        let Hyper { width, heads, kv_heads, key_size, value_size, .. } = self.hyper;
        let query = self.linear(h, "attn_q", heads * key_size, width)?;
        let key = self.linear(h, "attn_k", kv_heads * key_size, width)?;
        let value = self.linear(h, "attn_v", kv_heads * value_size, width)?;
        let query = self.batched(&query, "query")?;
        let query = self.rotate(&query, heads, rope, "query.turned")?;
        let key = self.batched(&key, "key")?;
        let key = self.rotate(&key, kv_heads, rope, "key.turned")?;
        let value = self.batched(&value, "value")?;
        let attended = self.attend([query, key, value], index)?;
        let rows = self.flat(&attended, heads * value_size, "attended.rows")?;
        self.linear(&rows, "attn_output", width, heads * value_size)
    }

    /// Softmax(query · keysᵀ / √size) · values for queries that see the cache and the tokens up to their own, FLOAT
    /// [batch, sequence, heads · value_size].
    fn attend(&mut self, qkv: [Var; 3], index: usize) -> Result<Var, ImportError> {
        let Hyper { heads, kv_heads, .. } = self.hyper;
        let cache = self.cache.dtype();
        let past = self.past(index);
        let names = ["query", "key", "value"];
        let (present_key, present_value) = (format!("present.{index}.key"), format!("present.{index}.value"));
        let ([attended, key, value], cast) = self.add(|g| {
            let mut narrow = Vec::with_capacity(3);
            for (x, name) in qkv.iter().zip(names) {
                narrow.push(match cache {
                    DType::Float => x.clone(),
                    _ => {
                        let node = g.node("Cast").input(x).attr("to", cache.onnx());
                        node.fresh(&format!("{name}.cached"))?
                    }
                });
            }
            let attended = g.unique("attended");
            let node = g.node("Attention").inputs(&narrow).skip().inputs(&past);
            let node = node.attr("is_causal", 1).attr("softmax_precision", DType::Float.onnx());
            let node = node.attr("q_num_heads", signed(heads)).attr("kv_num_heads", signed(kv_heads));
            let outputs = node.outputs([&attended, &present_key, &present_value])?;
            let cast = match cache {
                DType::Float => outputs[0].clone(),
                _ => {
                    let node = g.node("Cast").input(&outputs[0]).attr("to", DType::Float.onnx());
                    node.fresh("attended.wide")?
                }
            };
            Ok((outputs, cast))
        })?;
        drop(attended);
        self.retain(index, [&key, &value])?;
        Ok(cast)
    }
}
