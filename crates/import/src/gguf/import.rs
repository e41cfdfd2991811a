//! From a GGUF file to a model beside it.

use std::path::{Path, PathBuf};

use heirloom_graph::ModelBuilder;
use heirloom_mem::DType;
use heirloom_proto::ModelProto;

use super::arch::{self, architecture_names};
use super::decoder::{Decoder, graph_error};
use super::{Gguf, vocabulary};
use crate::ImportError;

/// The element type of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheType {
    /// FLOAT16.
    #[default]
    Float16,
    /// BFLOAT16.
    BFloat16,
    /// FLOAT.
    Float,
}

impl CacheType {
    /// The type as ONNX has it.
    pub fn dtype(self) -> DType {
        match self {
            Self::Float16 => DType::Float16,
            Self::BFloat16 => DType::BFloat16,
            Self::Float => DType::Float,
        }
    }
}

/// Choices for importing.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The element type of the caches.
    pub cache: CacheType,
    /// The model to write; `None` is the file's name with `.onnx`, beside it. It must be in the folder of the GGUF file
    /// or in one above.
    pub output: Option<PathBuf>,
}

/// Writes the model that the GGUF file `path` holds: a small `.onnx` whose weights are the bytes of that file. Returns
/// where it was written. The file itself is neither changed nor copied, and nothing of its weights is read.
///
/// # Errors
/// The file is not as it should be, its architecture is not in the table, or the model cannot be written; whatever was
/// at the output's place is then still there.
pub fn import(path: &Path, options: &ImportOptions) -> Result<PathBuf, ImportError> {
    let gguf = Gguf::open(path)?;
    let output = options.output.clone().unwrap_or_else(|| path.with_extension("onnx"));
    let location = location(path, &output)?;
    let model = overlay(&gguf, &location, options.cache)?;
    heirloom_proto::save(&model, &output, &heirloom_proto::SaveOptions::default())?;
    Ok(output)
}

/// The model that `gguf` holds, its weights at their offsets in a file that the model calls `location`. Its metadata
/// says what a text program needs: `heirloom.text` (that file), `heirloom.architecture`, `heirloom.context_length`,
/// `heirloom.bos_token_id`, `heirloom.eos_token_id`.
///
/// # Errors
/// The architecture is not in the table, or metadata or tensors are not as it needs them.
pub fn overlay(gguf: &Gguf, location: &str, cache: CacheType) -> Result<ModelProto, ImportError> {
    let name = gguf.text("general.architecture", "the importer")?;
    let architecture = arch::find(name).ok_or_else(|| ImportError::UnknownArchitecture {
        file: gguf.file().into(),
        architecture: name.into(),
        known: architecture_names(),
    })?;
    let mut model = ModelBuilder::new(name);
    let failed = graph_error(gguf);
    model.opset("", architecture.opset).map_err(&failed)?;
    let mut decoder = Decoder::new(gguf, architecture.name, location, cache, &mut model)?;
    let context = decoder.hyper().context();
    let logits = (architecture.build)(&mut decoder)?;
    decoder.output(&logits)?;
    decoder.finish()?;
    model.metadata("heirloom.architecture", name);
    model.metadata("heirloom.context_length", &context.to_string());
    if let Some(title) = gguf.value("general.name").and_then(super::Value::as_str) {
        model.doc(title);
    }
    if gguf.value("tokenizer.ggml.model").is_some() {
        model.metadata("heirloom.text", location);
        let fields = vocabulary(gguf)?;
        for (key, id) in [("heirloom.bos_token_id", fields.bos), ("heirloom.eos_token_id", fields.eos)] {
            if let Some(id) = id {
                model.metadata(key, &id.to_string());
            }
        }
    }
    model.finish().map_err(failed)
}

/// What a model at `output` calls the file `path`.
fn location(path: &Path, output: &Path) -> Result<String, ImportError> {
    let out_of_reach = || ImportError::OutOfReach { output: output.into(), file: path.into() };
    let folder = |path: &Path| {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        parent.canonicalize().map_err(|_| out_of_reach())
    };
    let (holds, wants) = (folder(path)?, folder(output)?);
    let name = path.file_name().ok_or_else(out_of_reach)?;
    if holds == wants && output.file_name() == Some(name) {
        return Err(out_of_reach());
    }
    let below = holds.strip_prefix(&wants).map_err(|_| out_of_reach())?.join(name);
    let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/")).ok_or_else(out_of_reach)
}
