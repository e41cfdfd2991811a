//! The blocks that decoder-only language models are made of, as functions that add them to the graph in the making.
//! An architecture is an order of them.

mod attention;
mod feed_forward;
mod frame;
mod hyper;
mod rope;
mod scaling;
mod weights;

use std::collections::BTreeMap;

use heirloom_graph::{Error, GraphBuilder, ModelBuilder, Var};

pub(super) use attention::Attention;
pub(super) use feed_forward::Activation;
pub(super) use hyper::{Hyper, Keys, real};
pub(super) use rope::{Pairs, Rope};

use super::Gguf;
use super::import::CacheType;
use crate::ImportError;

/// A decoder in the making.
pub(super) struct Decoder<'a> {
    gguf: &'a Gguf,
    architecture: &'static str,
    /// The file's name, as the model's external data gives it.
    location: &'a str,
    cache: CacheType,
    hyper: Hyper,
    model: &'a mut ModelBuilder,
    frame: frame::Frame,
    /// The values of the file's tensors that are in the graph, by name.
    weights: BTreeMap<String, Var>,
}

impl<'a> Decoder<'a> {
    /// Reads the model's numbers and declares the graph's inputs.
    pub(super) fn new(
        gguf: &'a Gguf,
        architecture: &'static str,
        location: &'a str,
        cache: CacheType,
        model: &'a mut ModelBuilder,
    ) -> Result<Self, ImportError> {
        let hyper = Hyper::read(gguf, architecture)?;
        let frame = frame::Frame::declare(model.graph(), &hyper, cache).map_err(graph_error(gguf))?;
        let weights = BTreeMap::new();
        Ok(Self { gguf, architecture, location, cache, hyper, model, frame, weights })
    }

    /// The model's numbers.
    pub(super) fn hyper(&self) -> &Hyper {
        &self.hyper
    }

    /// The metadata of the architecture.
    pub(super) fn keys(&self) -> Keys<'a> {
        Keys { gguf: self.gguf, architecture: self.architecture }
    }

    fn graph(&mut self) -> &mut GraphBuilder {
        self.model.graph()
    }

    /// Adds something to the graph.
    fn add<T>(&mut self, add: impl FnOnce(&mut GraphBuilder) -> Result<T, Error>) -> Result<T, ImportError> {
        add(self.model.graph()).map_err(graph_error(self.gguf))
    }

    /// `a + b`.
    pub(super) fn sum(&mut self, a: &Var, b: &Var) -> Result<Var, ImportError> {
        self.add(|g| g.node("Add").input(a).input(b).fresh("residual"))
    }

    /// The usual decoder: per layer attention and a gated feed-forward network, each behind a norm and with a
    /// residual around it.
    pub(super) fn pre_norm(&mut self, attention: &Attention<'_>) -> Result<Var, ImportError> {
        let mut x = self.embedding()?;
        for layer in 0..self.hyper.layers() {
            self.begin_layer(layer);
            let h = self.norm(&x, "attn_norm")?;
            let attended = self.attention(&h, layer, attention)?;
            x = self.sum(&x, &attended)?;
            let h = self.norm(&x, "ffn_norm")?;
            let fed = self.gated_feed_forward(&h, Activation::Swish)?;
            x = self.sum(&x, &fed)?;
        }
        self.head(&x)
    }

    /// Fails when the file has the metadata `name`, which asks for `feature`.
    pub(super) fn refuse(&self, name: &str, feature: &str) -> Result<(), ImportError> {
        let keys = self.keys();
        if !keys.present(name) {
            return Ok(());
        }
        let (file, key) = (self.gguf.file().into(), keys.key(name));
        Err(ImportError::Unsupported { file, key, feature: feature.into() })
    }

    /// Names that are made up from here on belong to layer `index`.
    pub(super) fn begin_layer(&mut self, index: usize) {
        self.graph().prefix(&format!("blk.{index}."));
        self.frame.layer = Some(index);
    }

    /// Fails when the file holds a tensor that the graph does not use: it then means something else.
    pub(super) fn finish(self) -> Result<(), ImportError> {
        match self.gguf.tensors().iter().find(|tensor| !self.weights.contains_key(tensor.name())) {
            Some(tensor) => Err(ImportError::UnusedTensor {
                file: self.gguf.file().into(),
                tensor: tensor.name().into(),
                architecture: self.architecture.into(),
            }),
            None => Ok(()),
        }
    }
}

/// Names the file in an error of the graph builder.
pub(super) fn graph_error(gguf: &Gguf) -> impl Fn(Error) -> ImportError + use<> {
    let file = gguf.file().to_owned();
    move |source| ImportError::Graph { file: file.clone(), source }
}
