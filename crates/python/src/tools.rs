//! What changes whole files and models: importing, quantizing.

use std::path::PathBuf;

use heirloom::import::ImportError;
use heirloom::import::gguf::{CacheType, ImportOptions, import};
use heirloom::quantize::{Converted, NameFilter, QuantizeError, QuantizeOptions, Target};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::detached;
use crate::engine;
use crate::error::{Raise, Raised};
use crate::model::PyModel;

impl Raise for ImportError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        Raised::new(py, "GgufError", "import", self).err()
    }
}

impl Raise for QuantizeError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            QuantizeError::Decode(error) => error.raise(py),
            QuantizeError::Model(error) => error.raise(py),
            _ => Raised::new(py, "QuantizeError", "nothing", self).err(),
        }
    }
}

/// Writes the model that a GGUF file holds; gives its path.
#[pyfunction]
#[pyo3(signature = (path, output, cache))]
pub(crate) fn import_gguf(
    py: Python<'_>,
    path: PathBuf,
    output: Option<PathBuf>,
    cache: &str,
) -> PyResult<PathBuf> {
    let cache = match cache {
        "float16" => CacheType::Float16,
        "bfloat16" => CacheType::BFloat16,
        "float32" => CacheType::Float,
        other => {
            let message = format!("`cache` is \"float16\", \"bfloat16\" or \"float32\", not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    detached(py, || import(&path, &ImportOptions { cache, output }))
}

/// The model with initializers in another form (`f32` decodes), with a report of each.
#[pyfunction]
#[pyo3(signature = (model, format, include, exclude, axis, block_size, threads))]
#[expect(clippy::too_many_arguments, reason = "the choices of one conversion")]
pub(crate) fn quantize<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    format: &str,
    include: Vec<String>,
    exclude: Vec<String>,
    axis: Option<i64>,
    block_size: Option<usize>,
    threads: Option<usize>,
) -> PyResult<(PyModel, Bound<'py, PyList>, Bound<'py, PyDict>)> {
    let engine = engine::shared(py, threads)?;
    let names = NameFilter { include, exclude };
    let model = model.get().model();
    let converted: Converted = if matches!(format, "f32" | "float32") {
        detached(py, || engine.dequantize(model, &names))?
    } else {
        let bad = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let target: Target = format.parse().map_err(|error| bad(&error))?;
        let target = target.along(axis, block_size).map_err(|error| bad(&error))?;
        detached(py, || engine.quantize(model, &QuantizeOptions { target, names }))?
    };
    let tensors = PyList::empty(py);
    for tensor in &converted.tensors {
        let dict = PyDict::new(py);
        dict.set_item("name", &tensor.name)?;
        dict.set_item("shape", &tensor.shape)?;
        dict.set_item("dtype", tensor.dtype.name())?;
        dict.set_item("bytes_before", tensor.bytes_before)?;
        dict.set_item("bytes_after", tensor.bytes_after)?;
        dict.set_item("rmse", tensor.error.map(|error| error.rmse))?;
        dict.set_item("max_error", tensor.error.map(|error| error.max))?;
        dict.set_item("rms", tensor.error.map(|error| error.rms))?;
        tensors.append(dict)?;
    }
    let skipped = PyDict::new(py);
    for entry in &converted.skipped {
        skipped.set_item(&entry.name, &entry.reason)?;
    }
    Ok((PyModel::new(converted.model), tensors, skipped))
}
