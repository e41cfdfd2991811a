//! Struct types as Python declares them, and their leaves.

use std::sync::Arc;

use heirloom::types::{Constant, StructBuilder, StructType, ValueType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::builder::PyFunctionBuilder;
use crate::error::Raised;
use crate::input;
use crate::tensor::dtype_named;
use heirloom::Value;

/// Most leaves that are told of one type.
const MOST_LEAVES: usize = 4096;

/// A declared struct type.
#[pyclass(frozen, eq, name = "StructType", module = "heirloom._native")]
#[derive(PartialEq)]
pub(crate) struct PyStructType(pub(crate) Arc<StructType>);

#[pymethods]
impl PyStructType {
    /// A structure of fields: `(name, kind, …)` with the kinds `tensor` (dtype, shape), `bits` (components, count),
    /// `nested` (type), `nested_array` (type, count) and `constant` (array).
    #[new]
    #[pyo3(signature = (name, fields, *, type_id, decoder, encoder))]
    fn py_new(
        py: Python<'_>,
        name: &str,
        fields: &Bound<'_, PyList>,
        type_id: Option<u64>,
        decoder: Option<&Bound<'_, PyFunctionBuilder>>,
        encoder: Option<&Bound<'_, PyFunctionBuilder>>,
    ) -> PyResult<PyStructType> {
        let mut builder = StructType::structure(name);
        for entry in fields {
            builder = field(builder, entry.cast::<PyTuple>()?)?;
        }
        if let Some(id) = type_id {
            builder = builder.type_id(id);
        }
        if let Some(decoder) = decoder {
            builder = builder.decoder(decoder.get().take()?);
        }
        if let Some(encoder) = encoder {
            builder = builder.encoder(encoder.get().take()?);
        }
        let built = builder.build().map_err(|fault| {
            let raised = Raised::new(py, "StructError", "declaration", fault.to_string());
            raised.with("path", &fault.path).with("reason", fault.error.to_string()).err()
        })?;
        Ok(PyStructType(built))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn type_id(&self) -> Option<u64> {
        self.0.type_id().map(Into::into)
    }

    #[getter]
    fn bit_size(&self) -> Option<u64> {
        self.0.bit_size()
    }

    #[getter]
    fn record_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.0
            .record_bytes()
            .map_err(|error| Raised::new(py, "StructError", "layout", error.to_string()).err())
    }

    #[getter]
    fn has_decoder(&self) -> bool {
        self.0.decoder().is_some()
    }

    #[getter]
    fn has_encoder(&self) -> bool {
        self.0.encoder().is_some()
    }

    fn leaves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        leaves(py, &self.0)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn field(builder: StructBuilder, entry: &Bound<'_, PyTuple>) -> PyResult<StructBuilder> {
    let (name, kind): (String, String) = entry.get_slice(0, 2).extract()?;
    Ok(match kind.as_str() {
        "tensor" => {
            let (dtype, shape): (String, Vec<usize>) = entry.get_slice(2, 4).extract()?;
            builder.tensor(&name, dtype_named(&dtype)?, &shape)
        }
        "bits" => {
            let (components, count): (Vec<(String, u32)>, u64) = entry.get_slice(2, 4).extract()?;
            let components: Vec<(&str, u32)> =
                components.iter().map(|(name, bits)| (&**name, *bits)).collect();
            builder.bits(&name, &components, count)
        }
        "nested" => builder.nested(&name, &entry.get_item(2)?.cast::<PyStructType>()?.get().0),
        "nested_array" => {
            let count: u64 = entry.get_item(3)?.extract()?;
            builder.nested_array(&name, &entry.get_item(2)?.cast::<PyStructType>()?.get().0, count)
        }
        "type" => builder.typed(&name, value_type(&entry.get_item(2)?)?),
        "constant" => match input::value(&entry.get_item(2)?, None, &format!("constant `{name}`"))? {
            Value::Tensor(tensor) => builder.constant(&name, tensor),
            Value::Strings(strings) => builder.constant_value(&name, Constant::Strings(strings)),
            other => {
                let message = format!("constant `{name}`: a {} is no constant", other.kind());
                return Err(PyValueError::new_err(message));
            }
        },
        other => return Err(PyValueError::new_err(format!("field `{name}`: there is no kind `{other}`"))),
    })
}

/// `{path, element, bits, bit_offset, dims}` of each leaf of a type of fixed size; empty for others.
pub(crate) fn leaves<'py>(py: Python<'py>, ty: &StructType) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for slot in ty.slots(MOST_LEAVES).unwrap_or_default() {
        let dict = PyDict::new(py);
        let dims: Vec<(u64, u64)> = slot.dims.iter().map(|dim| (dim.count, dim.stride)).collect();
        dict.set_item("path", &slot.path)?;
        dict.set_item("element", slot.leaf.to_string())?;
        dict.set_item("bits", slot.leaf.bit_width())?;
        dict.set_item("bit_offset", slot.bit_offset)?;
        dict.set_item("dims", dims)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// A declared type as Python gives it: a struct type, or a tuple `("tensor", dtype, shape or None)`, `("sequence", type)`,
/// `("optional", type)`, `("map", key dtype, type)`.
pub(crate) fn value_type(object: &Bound<'_, PyAny>) -> PyResult<ValueType> {
    use heirloom::types::{Dim, TensorSpec};
    if let Ok(ty) = object.cast::<PyStructType>() {
        return Ok(ValueType::Struct(ty.get().0.clone()));
    }
    let entry = object.cast::<PyTuple>()?;
    let kind: String = entry.get_item(0)?.extract()?;
    Ok(match kind.as_str() {
        "tensor" => {
            let dtype: String = entry.get_item(1)?.extract()?;
            let dims = entry.get_item(2)?;
            let dims = if dims.is_none() {
                None
            } else {
                let dim = |dim: PyResult<Bound<'_, PyAny>>| -> PyResult<Dim> {
                    let dim = dim?;
                    if dim.is_none() {
                        Ok(Dim::Unknown)
                    } else if let Ok(extent) = dim.extract::<usize>() {
                        Ok(Dim::Known(extent))
                    } else {
                        Ok(Dim::Param(dim.extract::<String>()?.into()))
                    }
                };
                Some(dims.try_iter()?.map(dim).collect::<PyResult<Vec<_>>>()?)
            };
            ValueType::Tensor(TensorSpec { dtype: dtype_named(&dtype)?, dims })
        }
        "sequence" => ValueType::sequence(value_type(&entry.get_item(1)?)?),
        "optional" => ValueType::optional(value_type(&entry.get_item(1)?)?),
        "map" => {
            let key: String = entry.get_item(1)?.extract()?;
            ValueType::map(dtype_named(&key)?, value_type(&entry.get_item(2)?)?)
        }
        other => return Err(PyValueError::new_err(format!("there is no kind of type `{other}`"))),
    })
}
