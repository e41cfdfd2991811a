//! Python objects as values: arrays where they lie, dicts as structs, lists as sequences.

use std::sync::Arc;

use heirloom::Value;
use heirloom::mem::{DType, Tensor};
use heirloom::types::{Content, MapKey, StringTensor, StructType, StructValue, ValueType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple, PyType};

use crate::encoded::PyEncoded;
use crate::error::{self, Raised};
use crate::foreign;
use crate::tensor::PyTensor;
use crate::view::{Unfit, View, dtype_of_format};

/// What the Python side of the package knows of NumPy.
struct Helpers {
    ndarray: Py<PyType>,
    array: Py<PyType>,
    module: Py<PyModule>,
}

fn helpers(py: Python<'_>) -> PyResult<&Helpers> {
    static HELPERS: PyOnceLock<Helpers> = PyOnceLock::new();
    HELPERS.get_or_try_init(py, || {
        let module = py.import("heirloom._arrays")?;
        let class = |name: &str| -> PyResult<Py<PyType>> { Ok(module.getattr(name)?.cast_into()?.unbind()) };
        Ok(Helpers { ndarray: class("ndarray")?, array: class("Array")?, module: module.unbind() })
    })
}

/// The value of `object` for the place `what`, such as ``input `x` ``, of the declared type `ty`.
pub(crate) fn value(object: &Bound<'_, PyAny>, ty: Option<&ValueType>, what: &str) -> PyResult<Value> {
    if let Ok(encoded) = object.cast::<PyEncoded>() {
        return Ok(Value::Encoded(encoded.get().value().clone()));
    }
    match ty {
        Some(ValueType::Optional(_)) if object.is_none() => Ok(Value::Optional(None)),
        Some(ValueType::Optional(inner)) => {
            Ok(Value::Optional(Some(Arc::new(value(object, Some(inner), what)?))))
        }
        Some(ValueType::Struct(ty)) => structure(object, Some(ty), what),
        Some(ValueType::Sequence(inner)) => {
            let items = object.try_iter().map_err(|_| wanted(object, "a list", what))?;
            let values: PyResult<Vec<Value>> = items
                .enumerate()
                .map(|(at, item)| value(&item?, Some(inner), &format!("{what}[{at}]")))
                .collect();
            Ok(Value::Sequence(Arc::new(values?)))
        }
        Some(ValueType::Map { value: inner, .. }) => map(object, Some(inner), what),
        Some(ValueType::Tensor(spec)) if spec.dtype == DType::String => strings(object, what),
        Some(ValueType::Tensor(spec)) => Ok(Value::Tensor(tensor(object, Some(spec.dtype), what)?)),
        // Nothing is declared: the object says what it is.
        _ if object.is_none() => Ok(Value::Optional(None)),
        _ if object.is_instance_of::<PyDict>() => structure(object, None, what),
        _ if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() => {
            let values: PyResult<Vec<Value>> = object
                .try_iter()?
                .enumerate()
                .map(|(at, item)| value(&item?, None, &format!("{what}[{at}]")))
                .collect();
            Ok(Value::Sequence(Arc::new(values?)))
        }
        _ if is_text(object)? => strings(object, what),
        _ => Ok(Value::Tensor(tensor(object, None, what)?)),
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

fn wanted(object: &Bound<'_, PyAny>, expected: &str, what: &str) -> PyErr {
    PyTypeError::new_err(format!("{what}: expected {expected}, got `{}`", type_name(object)))
}

/// A dict with exactly the fields of the type that are no constants.
fn structure(object: &Bound<'_, PyAny>, ty: Option<&Arc<StructType>>, what: &str) -> PyResult<Value> {
    let dict = object.cast::<PyDict>().map_err(|_| wanted(object, "a dict of its fields", what))?;
    let mut fields: Vec<(Arc<str>, Value)> = Vec::with_capacity(dict.len());
    let Some(ty) = ty else {
        for (key, item) in dict {
            let name =
                key.cast::<PyString>().map_err(|_| wanted(&key, "field names that are strings", what))?;
            let name = name.to_str()?;
            fields.push((name.into(), value(&item, None, &format!("{what}[{name:?}]"))?));
        }
        return Ok(Value::Struct(Arc::new(StructValue { fields })));
    };
    let mut missing = Vec::new();
    for field in ty.fields() {
        let Content::Type(inner) = &field.content else { continue };
        match dict.get_item(&*field.name)? {
            Some(item) => {
                let at = format!("{what}[{:?}]", field.name);
                fields.push((field.name.clone(), value(&item, Some(inner), &at)?));
            }
            None => missing.push(&*field.name),
        }
    }
    if fields.len() != dict.len() || !missing.is_empty() {
        let unknown: Vec<String> = dict
            .keys()
            .iter()
            .map(|key| key.to_string())
            .filter(|key| fields.iter().all(|(name, _)| **name != **key))
            .collect();
        let message = format!("{what}: {ty} has other fields: missing {missing:?}, unknown {unknown:?}");
        return Err(PyValueError::new_err(message));
    }
    Ok(Value::Struct(Arc::new(StructValue { fields })))
}

fn map(object: &Bound<'_, PyAny>, inner: Option<&Arc<ValueType>>, what: &str) -> PyResult<Value> {
    let dict = object.cast::<PyDict>().map_err(|_| wanted(object, "a dict", what))?;
    let mut entries = Vec::with_capacity(dict.len());
    for (key, item) in dict {
        let name = match key.cast::<PyString>() {
            Ok(text) => MapKey::String(text.to_str()?.into()),
            Err(_) => MapKey::Int(key.extract()?),
        };
        let item = value(&item, inner.map(|ty| &**ty), &format!("{what}[{name}]"))?;
        entries.push((name, item));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Value::Map(Arc::new(entries)))
}

fn is_text(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyString>() {
        return Ok(true);
    }
    if object.is_instance(helpers(object.py())?.ndarray.bind(object.py()))? {
        let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
        return Ok(matches!(kind.as_str(), "U" | "S" | "O" | "T"));
    }
    Ok(false)
}

/// A tensor of strings. Strings have no fixed width, so they are read one by one.
pub(crate) fn strings(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let py = object.py();
    let read = helpers(py)?.module.bind(py).call_method1("strings", (object,));
    let (shape, elements): (Vec<usize>, Bound<'_, PyList>) =
        read.map_err(|error| named(py, error, what))?.extract()?;
    let elements = elements
        .iter()
        .map(|item| Ok(Box::from(item.cast::<PyBytes>()?.as_bytes())))
        .collect::<PyResult<Vec<Box<[u8]>>>>()?;
    Ok(Value::Strings(Arc::new(StringTensor { shape: shape.into_iter().collect(), elements })))
}

/// A `TypeError` that names the place, with the first error as its cause.
fn named(py: Python<'_>, error: PyErr, what: &str) -> PyErr {
    let outer = PyTypeError::new_err(format!("{what}: {}", error.value(py)));
    outer.set_cause(py, Some(error));
    outer
}

/// A tensor in the memory of `object`: an array, a DLPack tensor, a buffer; or a number or a list of numbers, which are
/// made an array first.
pub(crate) fn tensor(object: &Bound<'_, PyAny>, dtype: Option<DType>, what: &str) -> PyResult<Tensor> {
    let py = object.py();
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return Ok(tensor.get().tensor().clone());
    }
    let helpers = helpers(py)?;
    if object.is_instance(helpers.ndarray.bind(py))? {
        if object.is_instance(helpers.array.bind(py))? {
            let inner = object.getattr("_tensor")?;
            if let Ok(tensor) = inner.cast::<PyTensor>() {
                return Ok(tensor.get().tensor().clone());
            }
        }
        return array(object, what);
    }
    if object.hasattr("__dlpack__")? {
        return dlpack(object, what);
    }
    if foreign::has_buffer(object) && !object.is_instance_of::<PyString>() {
        return fitted(py, &foreign::buffer(object)?, None, &described(object, what));
    }
    let name = dtype.map(DType::name);
    let made = helpers.module.bind(py).call_method1("from_python", (object, name));
    array(&made.map_err(|error| named(py, error, what))?, what)
}

fn described(object: &Bound<'_, PyAny>, what: &str) -> String {
    format!("{what}: the `{}`", type_name(object))
}

/// A NumPy array. Types that NumPy does not know itself have no buffer; they are looked at as integers of their width.
fn array(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Tensor> {
    let py = object.py();
    let what = format!("{what}: the array");
    match foreign::buffer(object) {
        Ok(view) => fitted(py, &view, None, &what),
        Err(_) => {
            let dtype = object.getattr("dtype")?;
            let name: String = dtype.getattr("name")?.extract()?;
            let item: usize = dtype.getattr("itemsize")?.extract()?;
            let Some(of) = extension_dtype(&name) else {
                let remedy =
                    if name.starts_with("int") || name.starts_with("uint") || name.starts_with("float") {
                        "heirloom.pack(x)"
                    } else {
                        "x.astype(...)"
                    };
                let reason = format!("ONNX keeps `{name}` in another form");
                return Err(error::layout(py, &what, &reason, remedy));
            };
            let bits = if item == 1 { "uint8" } else { "uint16" };
            let view = foreign::buffer(&object.call_method1("view", (bits,))?)?;
            fitted(py, &view, Some(of), &what)
        }
    }
}

/// The element types of `ml_dtypes` that fill whole bytes.
fn extension_dtype(name: &str) -> Option<DType> {
    Some(match name {
        "bfloat16" => DType::BFloat16,
        "float8_e4m3fn" => DType::Float8E4M3FN,
        "float8_e4m3fnuz" => DType::Float8E4M3FNUZ,
        "float8_e5m2" => DType::Float8E5M2,
        "float8_e5m2fnuz" => DType::Float8E5M2FNUZ,
        "float8_e8m0fnu" => DType::Float8E8M0,
        _ => return None,
    })
}

fn dlpack(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Tensor> {
    let py = object.py();
    let what = described(object, what);
    let (device, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if device != 1 {
        let reason = format!("it is on another device (DLPack device type {device})");
        return Err(error::layout(py, &what, &reason, "x.cpu()"));
    }
    let kwargs = PyDict::new(py);
    kwargs.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&kwargs)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__"),
        other => other,
    };
    let capsule = capsule.map_err(|cause| {
        let raised = Raised::new(py, "LayoutError", "layout", format!("{what}: {}", cause.value(py)));
        let error = raised.with("reason", cause.value(py).to_string()).with("remedy", None::<String>).err();
        error.set_cause(py, Some(cause));
        error
    })?;
    let (view, _) = foreign::from_dlpack(capsule.cast::<PyCapsule>()?)?;
    let dtype = crate::dlpack::from_text(&view.format);
    let Some(dtype) = dtype else {
        let reason = format!("ONNX has no element type `{}`", view.format);
        return Err(error::layout(py, &what, &reason, "x.to(...)"));
    };
    fitted(py, &view, Some(dtype), &what)
}

fn fitted(py: Python<'_>, view: &View, dtype: Option<DType>, what: &str) -> PyResult<Tensor> {
    let dtype = dtype.map_or_else(|| dtype_of_format(&view.format, view.item), Ok);
    let fitted = dtype.and_then(|dtype| view.tensor(dtype));
    fitted.map_err(|Unfit { reason, remedy }| error::layout(py, what, &reason, remedy))
}

/// Shape and payload of a buffer, whatever its elements mean.
pub(crate) fn payload(object: &Bound<'_, PyAny>, what: &str) -> PyResult<(heirloom::mem::Bytes, usize)> {
    let py = object.py();
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let inner = tensor.get().tensor();
        if let heirloom::mem::Storage::Dense(bytes) = inner.storage() {
            return Ok((bytes.clone(), 1));
        }
    }
    let view = if foreign::has_buffer(object) {
        foreign::buffer(object)?
    } else {
        return Err(wanted(object, "an array or another buffer", what));
    };
    let dense = View::dense_strides(&view.shape, view.item);
    let gaps = view.shape.iter().zip(&view.strides).zip(&dense).any(|((&n, a), b)| n > 1 && a != b);
    if gaps && !view.shape.contains(&0) {
        return Err(error::layout(
            py,
            what,
            "its elements do not lie one behind the other",
            "np.ascontiguousarray(x)",
        ));
    }
    Ok((view.bytes.clone(), view.item))
}
