//! Values as Python objects: arrays over the very memory, dicts, lists.

use std::sync::Arc;

use heirloom::Value;
use heirloom::mem::Tensor;
use heirloom::types::MapKey;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::encoded::PyEncoded;
use crate::tensor::PyTensor;

fn function<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || {
        let function = py.import("heirloom._arrays")?.getattr(name)?;
        Ok::<_, PyErr>(function.unbind())
    })?;
    Ok(found.bind(py))
}

/// The value as Python sees it. `writable` allows writes to a tensor that nothing else refers to.
pub(crate) fn object<'py>(py: Python<'py>, value: Value, writable: bool) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Tensor(tensor) => array(py, tensor, writable),
        Value::Strings(strings) => {
            static STRINGS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let elements = strings.elements.iter().map(|element| PyBytes::new(py, element));
            let shape: Vec<usize> = strings.shape.iter().copied().collect();
            function(py, &STRINGS, "string_array")?.call1((shape, PyList::new(py, elements)?))
        }
        Value::Encoded(encoded) => PyEncoded::new(encoded).into_bound_py_any(py),
        Value::Struct(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in &fields.fields {
                dict.set_item(&**name, object(py, value.clone(), false)?)?;
            }
            Ok(dict.into_any())
        }
        Value::Sequence(values) => {
            let items: PyResult<Vec<_>> =
                values.iter().map(|value| object(py, value.clone(), false)).collect();
            Ok(PyList::new(py, items?)?.into_any())
        }
        Value::Map(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries.iter() {
                let value = object(py, value.clone(), false)?;
                match key {
                    MapKey::Int(key) => dict.set_item(key, value)?,
                    MapKey::String(key) => dict.set_item(&**key, value)?,
                }
            }
            Ok(dict.into_any())
        }
        Value::Optional(None) => Ok(py.None().into_bound(py)),
        Value::Optional(Some(inner)) => object(py, Arc::unwrap_or_clone(inner), false),
        other => {
            let message = format!("a {} has no form in Python", other.kind());
            Err(pyo3::exceptions::PyNotImplementedError::new_err(message))
        }
    }
}

/// A NumPy array over the tensor's memory; the tensor itself where NumPy has no such elements.
pub(crate) fn array<'py>(py: Python<'py>, tensor: Tensor, writable: bool) -> PyResult<Bound<'py, PyAny>> {
    static WRAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let tensor = PyTensor::new(tensor, writable).into_bound_py_any(py)?;
    function(py, &WRAP, "wrap")?.call1((tensor,))
}
