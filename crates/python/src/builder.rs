//! Models and functions in the making.

use std::sync::{Mutex, MutexGuard, PoisonError};

use heirloom::Value;
use heirloom::graph::{Attr, FunctionBuilder, GraphBuilder, ModelBuilder, NodeBuilder, Var};
use heirloom::proto::FunctionProto;
use heirloom::types::{Affine, TensorType};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::call::detached;
use crate::error::OrRaise;
use crate::input;
use crate::model::PyModel;
use crate::structs::{PyStructType, value_type};
use crate::tensor::dtype_named;

/// What is being built: a model's main graph, a body, or a function.
enum Building {
    Model(Box<ModelBuilder>),
    Body(Box<GraphBuilder>),
    Function(Box<FunctionBuilder>),
}

#[pyclass(frozen, name = "Builder", module = "heirloom._native")]
pub(crate) struct PyBuilder(Mutex<Option<Building>>);

/// Functions are taken by what they become part of.
#[pyclass(frozen, name = "Function", module = "heirloom._native")]
pub(crate) struct PyFunctionBuilder(Mutex<Option<FunctionProto>>);

impl PyFunctionBuilder {
    /// A copy of the function's message.
    pub(crate) fn take(&self) -> PyResult<FunctionProto> {
        let proto = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        proto.ok_or_else(|| PyRuntimeError::new_err("the function was given away before"))
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("this graph is finished: nothing can be added to it")
}

impl PyBuilder {
    fn lock(&self) -> MutexGuard<'_, Option<Building>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn graph<R>(&self, work: impl FnOnce(&mut GraphBuilder) -> PyResult<R>) -> PyResult<R> {
        match self.lock().as_mut().ok_or_else(finished)? {
            Building::Model(model) => work(model.graph()),
            Building::Body(body) => work(body),
            Building::Function(_) => {
                Err(PyTypeError::new_err("a function has no types, initializers or bindings of its own"))
            }
        }
    }

    fn model<R>(&self, work: impl FnOnce(&mut ModelBuilder) -> PyResult<R>) -> PyResult<R> {
        match self.lock().as_mut().ok_or_else(finished)? {
            Building::Model(model) => work(model),
            _ => Err(PyTypeError::new_err("only a model has this")),
        }
    }
}

fn logical(dtype: Option<&str>, shape: Option<Vec<usize>>) -> PyResult<Option<TensorType>> {
    match (dtype, shape) {
        (Some(dtype), Some(shape)) => {
            Ok(Some(TensorType { dtype: dtype_named(dtype)?, shape: shape.into_iter().collect() }))
        }
        (None, None) => Ok(None),
        _ => Err(PyTypeError::new_err("the logical type takes both a dtype and a shape")),
    }
}

#[pymethods]
impl PyBuilder {
    #[staticmethod]
    fn for_model(py: Python<'_>, name: &str, opsets: Vec<(String, i64)>) -> PyResult<PyBuilder> {
        let mut model = ModelBuilder::new(name);
        for (domain, version) in opsets {
            model.opset(&domain, version).or_raise(py)?;
        }
        Ok(PyBuilder(Mutex::new(Some(Building::Model(Box::new(model))))))
    }

    #[staticmethod]
    fn for_function(
        py: Python<'_>,
        domain: &str,
        name: &str,
        opsets: Vec<(String, i64)>,
    ) -> PyResult<PyBuilder> {
        let mut function = FunctionBuilder::new(domain, name);
        for (domain, version) in opsets {
            function.opset(&domain, version).or_raise(py)?;
        }
        Ok(PyBuilder(Mutex::new(Some(Building::Function(Box::new(function))))))
    }

    fn body(&self, name: &str) -> PyResult<PyBuilder> {
        let body = match self.lock().as_mut().ok_or_else(finished)? {
            Building::Model(model) => model.graph().body(name),
            Building::Body(body) => body.body(name),
            Building::Function(function) => function.body(name),
        };
        Ok(PyBuilder(Mutex::new(Some(Building::Body(Box::new(body))))))
    }

    #[pyo3(signature = (name, ty))]
    fn input(&self, py: Python<'_>, name: &str, ty: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let ty = ty.map(value_type).transpose()?;
        let var = match (self.lock().as_mut().ok_or_else(finished)?, &ty) {
            (Building::Function(function), _) => function.input(name).or_raise(py)?,
            (Building::Model(model), Some(ty)) => model.graph().input(name, ty).or_raise(py)?,
            (Building::Model(model), None) => model.graph().untyped_input(name).or_raise(py)?,
            (Building::Body(body), Some(ty)) => body.input(name, ty).or_raise(py)?,
            (Building::Body(body), None) => body.untyped_input(name).or_raise(py)?,
        };
        Ok(var.name().to_owned())
    }

    #[pyo3(signature = (value, ty))]
    fn output(&self, py: Python<'_>, value: &str, ty: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let ty = ty.map(value_type).transpose()?;
        match (self.lock().as_mut().ok_or_else(finished)?, &ty) {
            (Building::Function(function), _) => function.output(value).or_raise(py),
            (Building::Model(model), Some(ty)) => model.graph().output(value, ty).or_raise(py),
            (Building::Model(model), None) => model.graph().untyped_output(value).or_raise(py),
            (Building::Body(body), Some(ty)) => body.output(value, ty).or_raise(py),
            (Building::Body(body), None) => body.untyped_output(value).or_raise(py),
        }
    }

    fn bind(&self, py: Python<'_>, input: &str, output: &str) -> PyResult<()> {
        self.graph(|graph| graph.bind(input, output).or_raise(py))
    }

    /// A constant under this name; with `fresh`, under one that begins so.
    fn initializer(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        fresh: bool,
    ) -> PyResult<String> {
        let value = input::value(value, None, &format!("initializer `{name}`"))?;
        if let Building::Function(function) = self.lock().as_mut().ok_or_else(finished)? {
            let attr = match &value {
                Value::Tensor(tensor) => Attr::from(tensor),
                Value::Strings(strings) => Attr::from(&**strings),
                other => return Err(PyTypeError::new_err(format!("a {} is no constant", other.kind()))),
            };
            return Ok(function.constant(name, attr).or_raise(py)?.name().to_owned());
        }
        self.graph(|graph| {
            let name = if fresh { graph.unique(name) } else { name.to_owned() };
            let var = match &value {
                Value::Tensor(tensor) => graph.initializer(&name, tensor),
                Value::Strings(strings) => graph.strings(&name, strings),
                Value::Encoded(encoded) => {
                    let mut named = (**encoded).clone();
                    named.name = name;
                    graph.encoded_value(&named)
                }
                other => return Err(PyTypeError::new_err(format!("a {} is no constant", other.kind()))),
            };
            Ok(var.or_raise(py)?.name().to_owned())
        })
    }

    /// A constant in records of a struct type.
    #[pyo3(signature = (name, ty, records, dtype, shape))]
    fn encoded(
        &self,
        py: Python<'_>,
        name: &str,
        ty: &Bound<'_, PyStructType>,
        records: &Bound<'_, PyAny>,
        dtype: Option<&str>,
        shape: Option<Vec<usize>>,
    ) -> PyResult<String> {
        let logical = logical(dtype, shape)?;
        let (payload, _) = input::payload(records, &format!("initializer `{name}`"))?;
        self.graph(|graph| {
            let var = graph.encoded(name, &ty.get().0, logical.as_ref(), payload);
            Ok(var.or_raise(py)?.name().to_owned())
        })
    }

    /// A constant of affine-quantized codes, packed as ONNX packs their type.
    #[pyo3(signature = (name, codes, storage, scale, zero_point, axis, block_size, dtype, shape))]
    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    fn affine(
        &self,
        py: Python<'_>,
        name: &str,
        codes: &Bound<'_, PyAny>,
        storage: &str,
        scale: &Bound<'_, PyAny>,
        zero_point: Option<&Bound<'_, PyAny>>,
        axis: Option<usize>,
        block_size: Option<usize>,
        dtype: &str,
        shape: Vec<usize>,
    ) -> PyResult<String> {
        let what = format!("initializer `{name}`");
        let storage = dtype_named(storage)?;
        let scale = input::tensor(scale, None, &format!("{what}, scale"))?;
        let zero_point = zero_point
            .map(|zero| input::tensor(zero, Some(storage), &format!("{what}, zero point")))
            .transpose()?;
        let (payload, _) = input::payload(codes, &what)?;
        let layout = Affine { storage, scale, zero_point, axis, block_size };
        let logical = TensorType { dtype: dtype_named(dtype)?, shape: shape.into_iter().collect() };
        self.graph(|graph| Ok(graph.affine(name, &layout, &logical, payload).or_raise(py)?.name().to_owned()))
    }

    /// Adds a node. Inputs are names, `None` where one is left out; outputs are names, or how many to make up.
    #[pyo3(signature = (op, inputs, attributes, outputs, domain, name))]
    #[expect(clippy::too_many_arguments, reason = "the parts of a node")]
    fn node(
        &self,
        py: Python<'_>,
        op: &str,
        inputs: Vec<Option<String>>,
        attributes: &Bound<'_, PyDict>,
        outputs: &Bound<'_, PyAny>,
        domain: &str,
        name: Option<&str>,
    ) -> PyResult<Vec<String>> {
        let mut attrs = Vec::with_capacity(attributes.len());
        for (key, value) in attributes {
            let key: String = key.extract()?;
            let attr = attribute(&value, &key)?;
            attrs.push((key, attr));
        }
        let given: Option<Vec<String>> = outputs.extract().ok();
        let count = if given.is_some() { 0 } else { outputs.extract::<usize>()? };
        let mut guard = self.lock();
        let building = guard.as_mut().ok_or_else(finished)?;
        let names = given.unwrap_or_else(|| made_up(building, op, count));
        let node = match building {
            Building::Model(model) => model.graph().node(op),
            Building::Body(body) => body.node(op),
            Building::Function(function) => function.node(op),
        };
        let mut node: NodeBuilder<'_> = if domain.is_empty() { node } else { node.domain(domain) };
        if let Some(name) = name {
            node = node.name(name);
        }
        for input in &inputs {
            node = match input {
                Some(value) => node.input(value),
                None => node.skip(),
            };
        }
        for (key, attr) in attrs {
            node = node.attr(&key, attr);
        }
        let vars: Vec<Var> = node.output_list(names.iter().map(|name| &**name)).or_raise(py)?;
        Ok(vars.iter().map(|var| var.name().to_owned()).collect())
    }

    fn metadata(&self, key: &str, value: &str) -> PyResult<()> {
        self.model(|model| {
            model.metadata(key, value);
            Ok(())
        })
    }

    fn doc(&self, text: &str) -> PyResult<()> {
        self.model(|model| {
            model.doc(text);
            Ok(())
        })
    }

    fn struct_type(&self, py: Python<'_>, ty: &Bound<'_, PyStructType>) -> PyResult<()> {
        self.model(|model| model.struct_type(&ty.get().0).or_raise(py))
    }

    fn add_function(&self, py: Python<'_>, function: &Bound<'_, PyFunctionBuilder>) -> PyResult<()> {
        let proto = function.get().take()?;
        self.model(|model| model.function(proto).or_raise(py))
    }

    /// The finished function.
    fn finish_function(&self, py: Python<'_>) -> PyResult<PyFunctionBuilder> {
        match self.lock().take() {
            Some(Building::Function(function)) => {
                Ok(PyFunctionBuilder(Mutex::new(Some(function.finish().or_raise(py)?))))
            }
            other => {
                *self.lock() = other;
                Err(PyTypeError::new_err("this is no function"))
            }
        }
    }

    /// The finished model; files of payloads are looked up in `base_dir`.
    #[pyo3(signature = (base_dir))]
    fn finish_model(&self, py: Python<'_>, base_dir: Option<std::path::PathBuf>) -> PyResult<PyModel> {
        let taken = self.lock().take();
        match taken {
            Some(Building::Model(model)) => {
                detached(py, || model.build(base_dir.as_deref())).map(PyModel::new)
            }
            None => Err(finished()),
            other => {
                *self.lock() = other;
                Err(PyTypeError::new_err("this is no model"))
            }
        }
    }
}

/// Names for outputs: the operator's, with a number where that is taken.
fn made_up(building: &mut Building, op: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(count);
    for at in 0..count {
        let hint = if at == 0 { op.to_owned() } else { format!("{op}_{at}th") };
        names.push(match building {
            Building::Model(model) => model.graph().unique(&hint),
            Building::Body(body) => body.unique(&hint),
            Building::Function(function) => function.unique(&hint),
        });
    }
    names
}

/// An attribute's value by its Python type: int and bool INT, float FLOAT, str and bytes STRING, lists of these, arrays
/// TENSOR, bodies GRAPH, types TYPE_PROTO.
fn attribute(value: &Bound<'_, PyAny>, key: &str) -> PyResult<Attr> {
    if let Ok(body) = value.cast::<PyBuilder>() {
        let mut guard = body.get().lock();
        return match guard.take() {
            Some(Building::Body(body)) => Ok(Attr::from(body.finish())),
            other => {
                *guard = other;
                Err(PyTypeError::new_err(format!(
                    "attribute `{key}`: this is no body, or one that is used already"
                )))
            }
        };
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        return Ok(Attr::from(value.extract::<i64>()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Attr::from(value.extract::<f64>()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Attr::from(text.to_str()?));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        let mut proto = heirloom::proto::AttributeProto::new();
        proto.set_type(heirloom::proto::attribute_proto::AttributeType::STRING);
        proto.set_s(bytes.as_bytes());
        return Ok(Attr::from(proto));
    }
    let is_type = value.is_instance_of::<PyTuple>()
        && value.get_item(0).is_ok_and(|kind| kind.is_instance_of::<PyString>());
    if is_type && let Ok(ty) = value_type(value) {
        return Ok(Attr::from(&ty));
    }
    if let Ok(list) = value.cast::<pyo3::types::PyList>() {
        let all = |is: fn(&Bound<'_, PyAny>) -> bool| list.iter().all(|item| is(&item));
        if all(|item| item.is_instance_of::<PyInt>()) {
            return Ok(Attr::ints(list.extract::<Vec<i64>>()?));
        }
        if all(|item| item.is_instance_of::<PyFloat>() || item.is_instance_of::<PyInt>()) {
            return Ok(Attr::floats(list.extract::<Vec<f32>>()?));
        }
        if all(|item| item.is_instance_of::<PyString>()) {
            return Ok(Attr::strings(list.extract::<Vec<String>>()?));
        }
        return Err(PyValueError::new_err(format!(
            "attribute `{key}`: a list holds only integers, only floats or only strings"
        )));
    }
    match input::value(value, None, &format!("attribute `{key}`"))? {
        Value::Tensor(tensor) => Ok(Attr::from(&tensor)),
        Value::Strings(strings) => Ok(Attr::from(&*strings)),
        other => Err(PyTypeError::new_err(format!("attribute `{key}`: a {} is no attribute", other.kind()))),
    }
}
