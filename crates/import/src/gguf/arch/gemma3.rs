//! Gemma 3: norms before and after each block, most layers with a window, GeGLU, an embedding scaled by the root of
//! the width. Norm weights in GGUF files of this architecture hold the 1 that the model's own code adds.

use heirloom_graph::Var;

use super::Architecture;
use crate::ImportError;
use crate::gguf::decoder::{Activation, Attention, Decoder, Pairs, real};

pub(super) const ARCHITECTURE: Architecture = Architecture { name: "gemma3", opset: 25, build };

/// One layer of so many sees everything, the last.
const PERIOD: usize = 6;
/// The layers of the 27 B model, which divides scores by the root of width / heads.
const LAYERS_OF_27B: usize = 62;

fn build(decoder: &mut Decoder<'_>) -> Result<Var, ImportError> {
    decoder.refuse("final_logit_softcapping", "a bound on logits")?;
    let keys = decoder.keys();
    let window = match keys.present("attention.sliding_window") {
        true => Some(keys.count("attention.sliding_window")?),
        false => None,
    };
    let period = keys.count_or("attention.sliding_window_pattern", PERIOD)?;
    let (width, heads) = (real(decoder.hyper().width()), decoder.hyper().heads());
    let scale = (decoder.hyper().layers() == LAYERS_OF_27B).then(|| (width / real(heads)).sqrt().recip());
    let everywhere = decoder.rope(Pairs::Halves)?;
    let nearby = decoder.window_rope(Pairs::Halves)?;
    let x = decoder.embedding()?;
    let mut x = decoder.scale(&x, width.sqrt(), "embedding.scaled")?;
    for layer in 0..decoder.hyper().layers() {
        decoder.begin_layer(layer);
        let sees_all = window.is_none() || (layer + 1) % period == 0;
        let rope = if sees_all { &everywhere } else { &nearby };
        let form = Attention { rope, head_norms: true, window: window.filter(|_| !sees_all), scale };
        let h = decoder.norm(&x, "attn_norm")?;
        let attended = decoder.attention(&h, layer, &form)?;
        let attended = decoder.norm(&attended, "post_attention_norm")?;
        x = decoder.sum(&x, &attended)?;
        let h = decoder.norm(&x, "ffn_norm")?;
        let fed = decoder.gated_feed_forward(&h, Activation::GeluTanh)?;
        let fed = decoder.norm(&fed, "post_ffw_norm")?;
        x = decoder.sum(&x, &fed)?;
    }
    decoder.head(&x)
}
