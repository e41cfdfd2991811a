//! Declared types of inputs and outputs as plain Python data, of which the package makes its own classes.

use heirloom::runtime::{Port, StateSlot};
use heirloom::types::{Dim, TensorSpec, ValueType};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// `{name, type, dtype, shape, optional, persistent}` of each.
pub(crate) fn list<'py>(py: Python<'py>, ports: &[Port]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for port in ports {
        let dict = described(py, &port.name, port.ty.as_ref())?;
        dict.set_item("optional", port.has_default)?;
        dict.set_item("persistent", port.persistent)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// `{name, output, type, dtype, shape}` of each.
pub(crate) fn slots<'py>(py: Python<'py>, slots: &[StateSlot]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for slot in slots {
        let dict = described(py, &slot.input, slot.ty.as_ref())?;
        dict.set_item("output", &slot.output)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn described<'py>(py: Python<'py>, name: &str, ty: Option<&ValueType>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", name)?;
    dict.set_item("type", ty.map(ToString::to_string))?;
    let spec = match ty {
        Some(ValueType::Tensor(spec)) => Some(spec),
        _ => None,
    };
    dict.set_item("dtype", spec.map(|spec| spec.dtype.name()))?;
    dict.set_item("shape", spec.map(|spec| shape(py, spec)).transpose()?.flatten())?;
    Ok(dict)
}

/// Numbers, symbols and None for each axis; `None` where not even the rank is declared.
fn shape(py: Python<'_>, spec: &TensorSpec) -> PyResult<Option<Vec<Py<PyAny>>>> {
    let Some(dims) = &spec.dims else { return Ok(None) };
    let dims = dims.iter().map(|dim| match dim {
        Dim::Known(extent) => extent.into_py_any(py),
        Dim::Param(symbol) => symbol.into_py_any(py),
        Dim::Unknown => Ok(py.None()),
    });
    dims.collect::<PyResult<Vec<_>>>().map(Some)
}
