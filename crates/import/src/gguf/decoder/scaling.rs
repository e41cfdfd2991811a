//! How models stretch rotary embeddings to contexts longer than those they were first trained for.

use std::f64::consts::TAU;

use super::hyper::{Keys, narrow, real};
use crate::ImportError;
use crate::gguf::Value;

/// `rope.scaling.type` with its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scaling {
    None,
    /// Every frequency is divided by the factor.
    Linear(f64),
    /// YaRN (Peng et al. 2023, arXiv 2309.00071): high frequencies stay, low ones are divided, those between mix.
    Yarn(Yarn),
}

/// The numbers of YaRN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Yarn {
    factor: f64,
    /// The context before stretching.
    original: f64,
    /// Pairs that turn more often than this within the original context keep their frequency.
    fast: f64,
    /// Pairs that turn less often than this are divided.
    slow: f64,
    /// A factor on top of YaRN's own magnitude.
    attention: f64,
}

impl Scaling {
    pub(super) fn read(keys: &Keys<'_>) -> Result<Self, ImportError> {
        const KIND: &str = "rope.scaling.type";
        let kind = if keys.present(KIND) {
            keys.gguf.text(&keys.key(KIND), &keys.reader())?
        } else if keys.present("rope.scaling.factor") {
            "linear"
        } else if keys.present("rope.scale_linear") {
            // An older way to say the same.
            return Ok(Self::Linear(positive(keys, "rope.scale_linear")?));
        } else {
            "none"
        };
        match kind {
            "none" => Ok(Self::None),
            "linear" => Ok(Self::Linear(positive(keys, "rope.scaling.factor")?)),
            "yarn" => Ok(Self::Yarn(Yarn {
                factor: positive(keys, "rope.scaling.factor")?,
                original: real(keys.count("rope.scaling.original_context_length")?),
                fast: keys.float_or("rope.scaling.yarn_beta_fast", 32.0)?,
                slow: keys.float_or("rope.scaling.yarn_beta_slow", 1.0)?,
                attention: keys.float_or("rope.scaling.attn_factor", 1.0)?,
            })),
            other => Err(ImportError::Unsupported {
                file: keys.gguf.file().into(),
                key: keys.key(KIND),
                feature: format!("`{other}` scaling of rotary embeddings"),
            }),
        }
    }

    /// The angle per position of each of `half` pairs, `base^(-pair / half)` before scaling, and what cosines and sines
    /// are multiplied by.
    pub(super) fn frequencies(&self, base: f64, half: usize) -> (Vec<f32>, f32) {
        let plain = |pair: usize| base.powf(-real(pair) / real(half));
        match self {
            Self::None => ((0..half).map(|pair| narrow(plain(pair))).collect(), 1.0),
            Self::Linear(factor) => ((0..half).map(|pair| narrow(plain(pair) / factor)).collect(), 1.0),
            Self::Yarn(yarn) => {
                let mix = |pair| {
                    let divided = yarn.divided(real(pair), base, real(half));
                    narrow(plain(pair) * (1.0 - divided + divided / yarn.factor))
                };
                let magnitude = yarn.attention * (1.0 + 0.1 * yarn.factor.max(1.0).ln());
                ((0..half).map(mix).collect(), narrow(magnitude))
            }
        }
    }
}

impl Yarn {
    /// How much of the division a pair takes: 0 for fast pairs, 1 for slow ones.
    fn divided(&self, pair: f64, base: f64, half: f64) -> f64 {
        // The pair that turns `turns` times within the original context.
        let pair_of = |turns: f64| half * (self.original / (turns * TAU)).ln() / base.ln();
        let first = pair_of(self.fast).floor().max(0.0);
        let last = pair_of(self.slow).ceil().min(2.0 * half - 1.0);
        ((pair - first) / (last - first).max(0.001)).clamp(0.0, 1.0)
    }
}

fn positive(keys: &Keys<'_>, name: &str) -> Result<f64, ImportError> {
    let key = keys.key(name);
    let value = keys.gguf.float(&key, &keys.reader())?;
    let wrong = || keys.gguf.bad_value(&key, "a positive float", &Value::Float(value));
    if value > 0.0 { Ok(value) } else { Err(wrong()) }
}
