//! Rotary position embedding: pairs of elements of queries and keys turn by an angle that grows with the position.

use heirloom_graph::Var;
use heirloom_mem::{DType, Tensor};

use super::Decoder;
use super::hyper::signed;
use super::scaling::Scaling;
use crate::ImportError;
use crate::gguf::Value;
use crate::gguf::cursor::wide;

/// Which elements of a head make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gguf) enum Pairs {
    /// 0 and 1, 2 and 3 … (llama.cpp: NORM).
    Adjacent,
    /// `i` and `i + half` (llama.cpp: NEOX).
    Halves,
}

/// The angles of all positions of a call, computed once for all layers that share them.
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
    /// The angles `position · base^(-2i / rotary)` for pair i, with the file's base and scaling.
    pub(in crate::gguf) fn rope(&mut self, pairs: Pairs) -> Result<Rope, ImportError> {
        let keys = self.keys();
        let rotary = self.rotary()?;
        let base = keys.float_or("rope.freq_base", BASE)?;
        let scaling = Scaling::read(&keys)?;
        let (frequencies, magnitude) = scaling.frequencies(base, rotary / 2);
        // Llama 3 keeps a divisor per pair.
        let divisors = match self.gguf.tensor("rope_freqs.weight") {
            Some(_) => Some(self.vector("rope_freqs.weight", rotary / 2)?),
            None => None,
        };
        self.angles(pairs, frequencies, magnitude, divisors.as_ref())
    }

    /// The angles of layers that see a window only: with the base `rope.freq_base_swa`, and never scaled.
    pub(in crate::gguf) fn window_rope(&mut self, pairs: Pairs) -> Result<Rope, ImportError> {
        let base = self.keys().float_or("rope.freq_base_swa", BASE)?;
        let (frequencies, magnitude) = Scaling::None.frequencies(base, self.rotary()? / 2);
        self.angles(pairs, frequencies, magnitude, None)
    }

    /// How many elements of a head turn.
    fn rotary(&self) -> Result<usize, ImportError> {
        let (name, size) = ("rope.dimension_count", self.hyper.key_size);
        let rotary = self.keys().count_or(name, size)?;
        if rotary % 2 == 0 && rotary <= size {
            return Ok(rotary);
        }
        let expected = format!("an even number up to {size}, the size of a head");
        Err(self.gguf.bad_value(&self.keys().key(name), &expected, &Value::Unsigned(wide(rotary))))
    }

    fn angles(
        &mut self,
        pairs: Pairs,
        frequencies: Vec<f32>,
        magnitude: f32,
        divisors: Option<&Var>,
    ) -> Result<Rope, ImportError> {
        let half = frequencies.len();
        let positions = self.positions()?;
        self.add(|g| {
            let table = Tensor::from_vec(&[1, 1, half], frequencies).expect("as many elements as pairs");
            let mut frequencies = g.initializer(&g.unique("rope.frequencies"), &table)?;
            if let Some(divisors) = divisors {
                frequencies = g.node("Div").input(&frequencies).input(divisors).fresh("rope.scaled")?;
            }
            let angles = g.node("Mul").input(&positions).input(&frequencies).fresh("rope.angles")?;
            let mut turned = [
                g.node("Cos").input(&angles).fresh("rope.cos")?,
                g.node("Sin").input(&angles).fresh("rope.sin")?,
            ];
            if magnitude != 1.0 {
                let magnitude = g.scalar("rope.magnitude", magnitude)?;
                for x in &mut turned {
                    *x = g.node("Mul").input(&*x).input(&magnitude).fresh("rope.magnified")?;
                }
            }
            let [cos, sin] = turned;
            Ok(Rope { cos, sin, pairs, rotary: half * 2 })
        })
    }

    /// The positions of the tokens, FLOAT [1, sequence, 1]: they go on where the first cache ends.
    fn positions(&mut self) -> Result<Var, ImportError> {
        if let Some(positions) = &self.frame.positions {
            return Ok(positions.clone());
        }
        let [ids, cache] = [&self.frame.input_ids, &self.frame.past[0][0]].map(Var::clone);
        let positions = self.add(|g| {
            let mut extent = |of: &Var, axis: i64, name: &str| {
                let extent = g.node("Shape").input(of).attr("start", axis).attr("end", axis + 1);
                let extent = extent.fresh(&format!("{name}_extent"))?;
                g.node("Squeeze").input(&extent).fresh(name)
            };
            let past = extent(&cache, 2, "past_length")?;
            let new = extent(&ids, 1, "sequence_length")?;
            let one = g.scalar("one", 1i64)?;
            let total = g.node("Add").input(&past).input(&new).fresh("total_length")?;
            let positions = g.node("Range").input(&past).input(&total).input(&one).fresh("positions")?;
            let positions = g.node("Cast").input(&positions).attr("to", DType::Float.onnx());
            let positions = positions.fresh("rope.positions")?;
            let column = g.vector("rope.column", vec![1i64, -1, 1])?;
            g.node("Reshape").input(&positions).input(&column).fresh("rope.column_of_positions")
        })?;
        self.frame.positions = Some(positions.clone());
        Ok(positions)
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

/// The base where the file names none.
const BASE: f64 = 10_000.0;
