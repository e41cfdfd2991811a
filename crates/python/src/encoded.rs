//! Encoded values as Python objects.

use std::sync::Arc;

use heirloom::mem::{DType, Tensor};
use heirloom::types::{EncodedValue, Layout};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::engine;
use crate::error::OrRaise;
use crate::foreign::ReleaseOnDrop;
use crate::output;

/// Bytes in a declared layout (a struct type's records, or affine codes), with the tensor that they stand for.
#[pyclass(frozen, name = "Encoded", module = "heirloom")]
pub(crate) struct PyEncoded {
    value: Arc<EncodedValue>,
    _release: ReleaseOnDrop,
}

impl PyEncoded {
    pub(crate) fn new(value: Arc<EncodedValue>) -> PyEncoded {
        PyEncoded { value, _release: ReleaseOnDrop }
    }

    pub(crate) fn value(&self) -> &Arc<EncodedValue> {
        &self.value
    }
}

#[pymethods]
impl PyEncoded {
    /// The value's name; may be empty.
    #[getter]
    fn name(&self) -> &str {
        &self.value.name
    }

    /// The layout in words.
    #[getter]
    fn layout(&self) -> String {
        self.value.layout.to_string()
    }

    /// The identity of the records' struct type; `None` for inline types and affine codes.
    #[getter]
    fn type_id(&self) -> Option<u64> {
        self.value.layout.as_struct().and_then(|layout| layout.type_id).map(|id| id.into())
    }

    /// The ONNX element type of the tensor that it stands for, where it stands for one.
    #[getter]
    fn dtype(&self) -> Option<&'static str> {
        self.value.logical.as_ref().map(|logical| logical.dtype.name())
    }

    /// The shape of the tensor that it stands for, where it stands for one.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.value.logical.as_ref().map(|logical| PyTuple::new(py, &logical.shape[..])).transpose()
    }

    /// Bytes of the payload.
    #[getter]
    fn nbytes(&self) -> usize {
        self.value.payload.len()
    }

    /// The address of the payload, to prove that two values share memory.
    #[getter]
    fn address(&self) -> usize {
        self.value.payload.address()
    }

    /// The payload as a read-only array of bytes, in place.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let payload = self.value.payload.clone();
        let tensor = Tensor::new(DType::Uint8, &[payload.len()], payload);
        let tensor = tensor.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        output::array(py, tensor, false)
    }

    /// The leaves of a record: path, element (an ONNX type, or a number of bits), bit offset, and count and distance in
    /// bits of each dimension. Empty for affine codes.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.value.layout {
            Layout::Struct(layout) => crate::structs::leaves(py, &layout.declaration),
            Layout::Affine(_) => Ok(PyList::empty(py)),
        }
    }

    /// Bytes of one record; `None` for affine codes.
    #[getter]
    fn record_bytes(&self) -> Option<usize> {
        self.value.layout.as_struct().map(|layout| layout.record_bytes)
    }

    /// The tensor that the value stands for, computed by a codec or by the decoder that the file brings.
    fn decode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let engine = engine::shared(py, None)?;
        let value = self.value.clone();
        let (tensor, _) = py.detach(|| engine.decode(&value)).or_raise(py)?;
        output::array(py, tensor, true)
    }

    fn __repr__(&self) -> String {
        let logical = self.value.logical.as_ref().map_or_else(String::new, |logical| {
            let shape: Vec<String> = logical.shape.iter().map(ToString::to_string).collect();
            format!("{}[{}] in ", logical.dtype, shape.join(", "))
        });
        format!("heirloom.Encoded({logical}{}, {} bytes)", self.value.layout, self.value.payload.len())
    }
}
