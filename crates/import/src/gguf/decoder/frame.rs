//! The ends of a decoder: inputs, embedding, positions, caches, norms, output head.

use heirloom_graph::{Error, GraphBuilder, Var};
use heirloom_mem::{DType, Tensor};
use heirloom_types::{Dim, ValueType};

use super::hyper::{Hyper, narrow, signed};
use super::{CacheType, Decoder};
use crate::ImportError;

/// Values that the whole graph shares.
pub(super) struct Frame {
    /// INT64 [batch, sequence].
    pub(super) input_ids: Var,
    /// INT64 []: how many of the last tokens get logits; 0 is all.
    logits_to_keep: Var,
    /// INT64 [2]: batch, sequence.
    ids_shape: Var,
    pub(super) past: Vec<[Var; 2]>,
    /// FLOAT [1, sequence, 1], once something asks for it.
    pub(super) positions: Option<Var>,
    /// The layer that is being added.
    pub(super) layer: Option<usize>,
}

/// A constant of one axis with exactly this name.
fn initializer(graph: &mut GraphBuilder, name: &str, values: Vec<i64>) -> Result<Var, Error> {
    let tensor = Tensor::from_vec(&[values.len()], values).expect("as many elements as the axis has");
    graph.initializer(name, &tensor)
}

/// The type of a cache: [batch, heads, positions, size].
fn cache_type(cache: CacheType, heads: usize, positions: &str, size: usize) -> ValueType {
    ValueType::symbolic(cache.dtype(), [Dim::from("batch"), heads.into(), positions.into(), size.into()])
}

impl Frame {
    pub(super) fn declare(graph: &mut GraphBuilder, hyper: &Hyper, cache: CacheType) -> Result<Self, Error> {
        let ids = ValueType::symbolic(DType::Int64, [Dim::from("batch"), "sequence".into()]);
        let input_ids = graph.input("input_ids", &ids)?;
        let logits_to_keep = graph.input("logits_to_keep", &ValueType::tensor(DType::Int64, &[]))?;
        let past = (0..hyper.layers)
            .map(|layer| {
                let (key, value) = (
                    cache_type(cache, hyper.kv_heads, "past", hyper.key_size),
                    cache_type(cache, hyper.kv_heads, "past", hyper.value_size),
                );
                Ok([
                    graph.input(&format!("past_key_values.{layer}.key"), &key)?,
                    graph.input(&format!("past_key_values.{layer}.value"), &value)?,
                ])
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let ids_shape = graph.node("Shape").input(&input_ids).fresh("ids_shape")?;
        Ok(Self { input_ids, logits_to_keep, ids_shape, past, positions: None, layer: None })
    }
}

impl Decoder<'_> {
    /// The states of the tokens, FLOAT [tokens, width]: rows of `token_embd.weight`.
    pub(in crate::gguf) fn embedding(&mut self) -> Result<Var, ImportError> {
        let (rows, width) = (self.hyper.vocabulary, self.hyper.width);
        let weight = self.matrix("token_embd.weight", rows, width)?;
        let ids = self.frame.input_ids.clone();
        self.add(|g| {
            let all = g.vector("all", vec![-1i64])?;
            let ids = g.node("Reshape").input(&ids).input(&all).fresh("flat_ids")?;
            g.node("Gather").input(&weight).input(&ids).attr("axis", 0).fresh("embedding")
        })
    }

    /// `x · factor`.
    pub(in crate::gguf) fn scale(&mut self, x: &Var, factor: f64, name: &str) -> Result<Var, ImportError> {
        self.add(|g| {
            let factor = g.scalar(&format!("{name}.factor"), narrow(factor))?;
            g.node("Mul").input(x).input(&factor).fresh(name)
        })
    }

    /// `[tokens, size]` as `[batch, sequence, size]`.
    pub(super) fn batched(&mut self, rows: &Var, size: usize, name: &str) -> Result<Var, ImportError> {
        let ids_shape = self.frame.ids_shape.clone();
        self.add(|g| {
            let shape = format!("batch_sequence_{size}");
            // One shape per size serves all layers.
            if !g.sees(&shape) {
                let size = initializer(g, &format!("size_{size}"), vec![signed(size)])?;
                g.node("Concat").input(&ids_shape).input(&size).attr("axis", 0).output(&shape)?;
            }
            g.node("Reshape").input(rows).input(&shape).fresh(name)
        })
    }

    /// `[batch, sequence, size]` as `[tokens, size]`.
    pub(super) fn flat(&mut self, x: &Var, size: usize, name: &str) -> Result<Var, ImportError> {
        self.add(|g| {
            let shape = format!("tokens_{size}");
            if !g.sees(&shape) {
                initializer(g, &shape, vec![-1, signed(size)])?;
            }
            g.node("Reshape").input(x).input(&shape).fresh(name)
        })
    }

    /// The caches of keys and values of layer `index`.
    pub(super) fn past(&self, index: usize) -> [Var; 2] {
        self.frame.past[index].clone()
    }

    /// Makes `present` the outputs that the caches of layer `index` come from.
    pub(super) fn retain(&mut self, index: usize, present: &[Var; 2]) -> Result<(), ImportError> {
        let Hyper { kv_heads, key_size, value_size, .. } = self.hyper;
        let cache = self.cache;
        let past = self.past(index);
        self.add(|g| {
            for ((present, past), size) in present.iter().zip(&past).zip([key_size, value_size]) {
                g.output(present, &cache_type(cache, kv_heads, "total", size))?;
                g.bind(past, present)?;
            }
            Ok(())
        })
    }

    /// `x / sqrt(mean(x²) + epsilon) · weight` over the last axis, with this layer's weight `name`.
    pub(in crate::gguf) fn norm(&mut self, x: &Var, name: &str) -> Result<Var, ImportError> {
        let size = self.hyper.width;
        self.norm_of(x, name, size)
    }

    /// The same over an axis of another size than the model's width.
    pub(in crate::gguf) fn norm_of(&mut self, x: &Var, name: &str, size: usize) -> Result<Var, ImportError> {
        let tensor = self.own(&format!("{name}.weight"));
        let weight = self.vector(&tensor, size)?;
        let epsilon = self.hyper.epsilon;
        self.add(|g| {
            let node = g.node("RMSNormalization").input(x).input(&weight);
            node.attr("axis", -1).attr("epsilon", epsilon).fresh(&format!("{name}.out"))
        })
    }

    /// The logits, FLOAT [batch, kept, vocabulary]: norm and product for the last tokens that the caller wants.
    pub(in crate::gguf) fn head(&mut self, x: &Var) -> Result<Var, ImportError> {
        self.frame.layer = None;
        self.graph().prefix("");
        let (width, rows) = (self.hyper.width, self.hyper.vocabulary);
        let x = self.batched(x, width, "final_states")?;
        let keep = self.frame.logits_to_keep.clone();
        // A start of -0 is the first token.
        let kept = self.add(|g| {
            let one = g.vector("one_element", vec![1i64])?;
            let start = g.node("Neg").input(&keep).fresh("minus_kept")?;
            let start = g.node("Reshape").input(&start).input(&one).fresh("first_kept")?;
            let end = g.vector("to_the_end", vec![i64::MAX])?;
            let axis = g.vector("sequence_axis", vec![1i64])?;
            g.node("Slice").input(&x).input(&start).input(&end).input(&axis).fresh("kept_states")
        })?;
        let flat = self.flat(&kept, width, "kept_rows")?;
        let normed = self.norm(&flat, "output_norm")?;
        let output =
            if self.gguf.tensor("output.weight").is_some() { "output.weight" } else { "token_embd.weight" };
        let weight = self.matrix(output, rows, width)?;
        self.add(|g| {
            let logits =
                g.node("Gemm").input(&normed).input(&weight).attr("transB", 1).fresh("flat_logits")?;
            let shape = g.node("Shape").input(&kept).attr("start", 0).attr("end", 2).fresh("kept_shape")?;
            let rest = g.vector("logits_size", vec![signed(rows)])?;
            let shape = g.node("Concat").input(&shape).input(&rest).attr("axis", 0).fresh("logits_shape")?;
            g.node("Reshape").input(&logits).input(&shape).output("logits")
        })
    }

    /// Declares the logits as output.
    pub(in crate::gguf) fn output(&mut self, logits: &Var) -> Result<(), ImportError> {
        let dims = [Dim::from("batch"), "kept".into(), self.hyper.vocabulary.into()];
        self.add(|g| g.output(logits, &ValueType::symbolic(DType::Float, dims)))
    }
}
