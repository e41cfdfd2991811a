//! Rotary position embedding: pairs of elements of queries and keys turn by an angle that grows with the position.

use heirloom_graph::Var;
use heirloom_mem::{DType, Tensor};

use super::Decoder;
use super::hyper::{Keys, signed};
use crate::ImportError;
use crate::gguf::Value;

/// Which elements of a head make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gguf) enum Pairs {
    /// 0 and 1, 2 and 3 … (llama.cpp: NORM).
    Adjacent,
    /// `i` and `i + half` (llama.cpp: NEOX).
    Halves,
}

/// The angles of all positions of a call, computed once for all layers.
#[derive(Debug, Clone)]
pub(in crate::gguf) struct Rope {
    /// FLOAT [1, sequence, rotary / 2].
    cos: Var,
    /// As `cos`.
    sin: Var,
    pairs: Pairs,
    /// Elements of a head that turn.
    rotary: usize,
}

impl Decoder<'_> {
    /// The angles `position · base^(-2i / rotary)` for pair i, with the file's scaling of long contexts.
    pub(in crate::gguf) fn rope(&mut self, pairs: Pairs) -> Result<Rope, ImportError> {
        let keys = Keys { gguf: self.gguf, architecture: self.architecture };
        let rotary = keys.count_or("rope.dimension_count", self.hyper.key_size)?;
        if rotary % 2 != 0 || rotary > self.hyper.key_size {
            let value = Value::Unsigned(crate::gguf::cursor::wide(rotary));
            let expected = format!("an even number up to the head's size {}", self.hyper.key_size);
            return Err(self.gguf.bad_value(&keys.key("rope.dimension_count"), &expected, &value));
        }
        let base = keys.float("rope.freq_base")?.unwrap_or(10_000.0);
        let slowdown = self.linear_scaling(&keys)?;
        let half = rotary / 2;
        let frequencies: Vec<f32> = (0..half).map(|pair| frequency(base, pair, half) / slowdown).collect();
        // Llama 3 keeps a divisor per pair.
        let divisors = match self.gguf.tensor("rope_freqs.weight") {
            Some(_) => Some(self.vector("rope_freqs.weight", half)?),
            None => None,
        };
        let positions = self.positions()?;
        self.add(|g| {
            let table = Tensor::from_vec(&[1, 1, half], frequencies).expect("as many elements as pairs");
            let mut frequencies = g.initializer("rope.frequencies", &table)?;
            if let Some(divisors) = divisors {
                frequencies = g.node("Div").input(&frequencies).input(&divisors).fresh("rope.scaled")?;
            }
            let positions = g.node("Cast").input(&positions).attr("to", DType::Float.onnx());
            let positions = positions.fresh("rope.positions")?;
            let column = g.vector("rope.column", vec![1i64, -1, 1])?;
            let positions =
                g.node("Reshape").input(&positions).input(&column).fresh("rope.column_of_positions")?;
            let angles = g.node("Mul").input(&positions).input(&frequencies).fresh("rope.angles")?;
            let cos = g.node("Cos").input(&angles).fresh("rope.cos")?;
            let sin = g.node("Sin").input(&angles).fresh("rope.sin")?;
            Ok(Rope { cos, sin, pairs, rotary })
        })
    }

    /// By what linear scaling divides the frequencies; 1 without.
    fn linear_scaling(&self, keys: &Keys<'_>) -> Result<f32, ImportError> {
        const KIND: &str = "rope.scaling.type";
        let kind = match self.gguf.value(&keys.key(KIND)) {
            Some(_) => self.gguf.text(&keys.key(KIND), &keys.reader())?,
            None => "none",
        };
        match kind {
            "none" => Ok(1.0),
            "linear" => {
                let key = keys.key("rope.scaling.factor");
                let factor = self.gguf.float(&key, &keys.reader())?;
                let wrong = || self.gguf.bad_value(&key, "a positive float", &Value::Float(factor));
                if factor > 0.0 { Ok(narrow(factor)) } else { Err(wrong()) }
            }
            other => Err(ImportError::Unsupported {
                file: self.gguf.file().into(),
                key: keys.key(KIND),
                feature: format!("`{other}` scaling of rotary embeddings"),
            }),
        }
    }

    /// Turns the `heads` heads of `x`, [batch, sequence, heads · size].
    pub(super) fn rotate(
        &mut self,
        x: &Var,
        heads: usize,
        rope: &Rope,
        name: &str,
    ) -> Result<Var, ImportError> {
        let whole = rope.rotary == self.hyper.key_size;
        self.add(|g| {
            let node = g.node("RotaryEmbedding").input(x).input(&rope.cos).input(&rope.sin);
            let node = node.attr("num_heads", signed(heads));
            let node = if whole { node } else { node.attr("rotary_embedding_dim", signed(rope.rotary)) };
            node.attr("interleaved", rope.pairs == Pairs::Adjacent).fresh(name)
        })
    }
}

/// `base^(-pair / half)`.
fn frequency(base: f64, pair: usize, half: usize) -> f32 {
    let exponent =
        f64::from(u32::try_from(pair).unwrap_or(u32::MAX)) / f64::from(u32::try_from(half).unwrap_or(1));
    narrow(base.powf(-exponent))
}

/// The nearest f32.
#[allow(clippy::as_conversions)]
fn narrow(value: f64) -> f32 {
    value as f32
}
