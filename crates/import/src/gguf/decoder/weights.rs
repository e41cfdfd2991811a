//! Weights: initializers whose bytes stay in the GGUF file.

use heirloom_graph::{Error, Var};
use heirloom_mem::{DType, Shape};
use heirloom_proto::ExternalLocation;
use heirloom_types::TensorType;

use super::{Decoder, graph_error};
use crate::ImportError;
use crate::gguf::cursor::wide;
use crate::gguf::{Storage, Tensor};

/// GGUF's numbers of the float types.
const F32: u32 = 0;
const F16: u32 = 1;
const BF16: u32 = 30;

impl<'a> Decoder<'a> {
    /// The whole name of a tensor of the current layer.
    pub(super) fn own(&self, name: &str) -> String {
        match self.frame.layer {
            Some(layer) => format!("blk.{layer}.{name}"),
            None => name.to_owned(),
        }
    }

    /// Whether the current layer has that tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.gguf.tensor(&self.own(name)).is_some()
    }

    /// A matrix [rows, columns]: in records of its block format, or dense FLOAT. Its logical type is FLOAT either way.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Var, ImportError> {
        let (tensor, logical, place) = self.placed(name, &[rows, columns])?;
        if let Some(var) = self.weights.get(name) {
            return Ok(var.clone());
        }
        let graph = self.model.graph();
        let var = match tensor.kind().storage {
            Storage::Blocks(format) => graph.encoded(name, format.declaration(), Some(&logical), place),
            Storage::Dense(DType::Float) => graph.external_initializer(name, &logical, &place),
            Storage::Dense(_) => return Err(self.wrong(tensor, "a float type or block format")),
        };
        self.keep(name, var)
    }

    /// A vector of FLOAT; one of a narrower float type is widened in the graph.
    pub(super) fn vector(&mut self, name: &str, size: usize) -> Result<Var, ImportError> {
        let (tensor, logical, place) = self.placed(name, &[size])?;
        if let Some(var) = self.weights.get(name) {
            return Ok(var.clone());
        }
        let dtype = match tensor.kind().number {
            F32 => DType::Float,
            F16 => DType::Float16,
            BF16 => DType::BFloat16,
            _ => return Err(self.wrong(tensor, "f32, f16 or bf16")),
        };
        let graph = self.model.graph();
        let var = graph.external_initializer(name, &TensorType { dtype, ..logical }, &place);
        let var = match var {
            Ok(narrow) if dtype != DType::Float => {
                let cast = graph.node("Cast").input(&narrow).attr("to", DType::Float.onnx());
                cast.fresh(&format!("{name}.wide"))
            }
            var => var,
        };
        self.keep(name, var)
    }

    /// `x · weightᵀ + bias` for the current layer's tensors `name.weight` and, where it is there, `name.bias`;
    /// `x` is [tokens, columns] and the result [tokens, rows].
    pub(super) fn linear(
        &mut self,
        x: &Var,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Var, ImportError> {
        let weight = self.own(&format!("{name}.weight"));
        let weight = self.matrix(&weight, rows, columns)?;
        let bias = format!("{name}.bias");
        let bias = if self.has(&bias) { Some(self.vector(&self.own(&bias), rows)?) } else { None };
        self.add(|g| {
            let node = g.node("Gemm").input(x).input(&weight);
            let node = if let Some(bias) = &bias { node.input(bias) } else { node };
            node.attr("transB", 1).fresh(&format!("{name}.out"))
        })
    }

    fn tensor(&self, name: &str) -> Result<&'a Tensor, ImportError> {
        self.gguf.tensor(name).ok_or_else(|| ImportError::MissingTensor {
            file: self.gguf.file().into(),
            tensor: name.into(),
            architecture: self.architecture.into(),
        })
    }

    /// A tensor of that shape, the FLOAT tensor that it stands for, and where its bytes are.
    fn placed(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<(&'a Tensor, TensorType, ExternalLocation), ImportError> {
        let tensor = self.tensor(name)?;
        if !tensor.shape().eq(shape.iter().copied().map(wide)) {
            return Err(self.wrong(tensor, &format!("{shape:?}")));
        }
        let logical = TensorType { dtype: DType::Float, shape: Shape::from_slice(shape) };
        let (start, length) = (wide(tensor.range().start), wide(tensor.range().len()));
        let place = ExternalLocation::new(self.location, start, length);
        let wrong = |source| ImportError::Location { file: self.gguf.file().into(), source };
        Ok((tensor, logical, place.map_err(wrong)?))
    }

    /// Remembers the value of a tensor: one that is used twice has one initializer.
    fn keep(&mut self, name: &str, var: Result<Var, Error>) -> Result<Var, ImportError> {
        let var = var.map_err(graph_error(self.gguf))?;
        self.weights.insert(name.to_owned(), var.clone());
        Ok(var)
    }

    fn wrong(&self, tensor: &Tensor, expected: &str) -> ImportError {
        let shape: Vec<u64> = tensor.shape().collect();
        ImportError::TensorShape {
            file: self.gguf.file().into(),
            tensor: tensor.name().into(),
            expected: expected.into(),
            actual: format!("{} {shape:?}", tensor.kind().name),
        }
    }
}
