//! Complete models of a few kilobytes.

use crate::build::File;

/// Sizes of the tiny models.
pub(crate) const LAYERS: usize = 2;
const WIDTH: u64 = 64;
const HEADS: u32 = 4;
const KV_HEADS: u32 = 2;
const HEAD: u64 = 16;
const HIDDEN: u64 = 96;
const VOCABULARY: u64 = 40;

/// GGUF's numbers of types.
const F32: u32 = 0;
const F16: u32 = 1;
const Q8_0: u32 = 8;

/// A tiny model whose tensors `keep` accepts; metadata, too, is left out where it does not.
pub(crate) fn model(architecture: &str, keep: impl Fn(&str) -> bool) -> File {
    let key = |name: &str| format!("{architecture}.{name}");
    let mut file = File::new().text("general.architecture", architecture).text("general.name", "tiny");
    let numbers = [
        ("block_count", LAYERS as u32),
        ("context_length", 128),
        ("embedding_length", WIDTH as u32),
        ("feed_forward_length", HIDDEN as u32),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
    ];
    for (name, number) in numbers.into_iter().filter(|(name, _)| keep(name)) {
        file = file.unsigned(&key(name), number);
    }
    for (name, number) in [("rope.freq_base", 5e5), ("attention.layer_norm_rms_epsilon", 1e-5)] {
        if keep(name) {
            file = file.float(&key(name), number);
        }
    }
    let (queries, keys) = (HEAD * u64::from(HEADS), HEAD * u64::from(KV_HEADS));
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), vec![WIDTH, VOCABULARY], Q8_0),
        ("output_norm.weight".to_owned(), vec![WIDTH], F32),
    ];
    for layer in 0..LAYERS {
        let mut add = |name: &str, dims: &[u64], kind| {
            tensors.push((format!("blk.{layer}.{name}"), Vec::from(dims), kind));
        };
        add("attn_norm.weight", &[WIDTH], F32);
        add("attn_q.weight", &[WIDTH, queries], Q8_0);
        add("attn_k.weight", &[WIDTH, keys], F16);
        add("attn_v.weight", &[WIDTH, keys], F32);
        add("attn_output.weight", &[queries, WIDTH], Q8_0);
        add("ffn_norm.weight", &[WIDTH], F16);
        add("ffn_gate.weight", &[WIDTH, HIDDEN], Q8_0);
        add("ffn_up.weight", &[WIDTH, HIDDEN], Q8_0);
        add("ffn_down.weight", &[HIDDEN, WIDTH], Q8_0);
        match architecture {
            "qwen2" => {
                add("attn_q.bias", &[queries], F32);
                add("attn_k.bias", &[keys], F32);
                add("attn_v.bias", &[keys], F32);
            }
            "qwen3" | "gemma3" => {
                add("attn_q_norm.weight", &[HEAD], F32);
                add("attn_k_norm.weight", &[HEAD], F32);
            }
            _ => {}
        }
        if architecture == "gemma3" {
            add("post_attention_norm.weight", &[WIDTH], F32);
            add("post_ffw_norm.weight", &[WIDTH], F32);
        }
    }
    for (name, dims, kind) in tensors.into_iter().filter(|(name, ..)| keep(name)) {
        let elements: u64 = dims.iter().product();
        let bytes = match kind {
            F32 => elements * 4,
            F16 => elements * 2,
            _ => elements / 32 * 34,
        };
        // Any bits are weights; small floats keep clear of NaN.
        let data: Vec<u8> = (0..bytes).map(|at| (at * 7 % 61) as u8).collect();
        file = file.tensor(&name, &dims, kind, &data);
    }
    file
}

/// The whole model.
pub(crate) fn whole(architecture: &str) -> File {
    model(architecture, |_| true)
}
