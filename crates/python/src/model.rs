//! Models.

use std::path::PathBuf;
use std::sync::Arc;

use heirloom::graph::{self, External, SaveOptions};
use heirloom::{Model, OpenOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::call::detached;
use crate::error::OrRaise;
use crate::foreign::ReleaseOnDrop;
use crate::{input, inspect, output};

#[pyclass(frozen, name = "Model", module = "heirloom._native")]
pub(crate) struct PyModel {
    model: Arc<Model>,
    _release: ReleaseOnDrop,
}

impl PyModel {
    pub(crate) fn new(model: Model) -> PyModel {
        PyModel { model: Arc::new(model), _release: ReleaseOnDrop }
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }
}

fn options(external_roots: Vec<PathBuf>, allow_missing_files: bool) -> OpenOptions {
    let options = OpenOptions::default().allow_missing_files(allow_missing_files);
    external_roots.into_iter().fold(options, OpenOptions::external_root)
}

#[pymethods]
impl PyModel {
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        external_roots: Vec<PathBuf>,
        allow_missing_files: bool,
    ) -> PyResult<PyModel> {
        let options = options(external_roots, allow_missing_files);
        detached(py, || Model::open(path, &options)).map(PyModel::new)
    }

    #[staticmethod]
    fn from_bytes(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        base_dir: Option<PathBuf>,
        external_roots: Vec<PathBuf>,
        allow_missing_files: bool,
    ) -> PyResult<PyModel> {
        let (bytes, _) = input::payload(data, "the model")?;
        let options = options(external_roots, allow_missing_files);
        detached(py, || Model::from_bytes(bytes, base_dir.as_deref(), &options)).map(PyModel::new)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.model.proto().encode_to(&mut bytes).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn save(&self, py: Python<'_>, path: PathBuf, external: &str) -> PyResult<()> {
        let external = match external {
            "keep" => External::Keep,
            "inline" => External::Inline,
            "file" => External::File(graph::PayloadFile::default()),
            other => {
                let message = format!("`external` is \"keep\", \"inline\" or \"file\", not {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        let options = SaveOptions::default().external(external);
        detached(py, || self.model.save(path, &options))
    }

    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.model.path().map(PathBuf::from)
    }

    #[getter]
    fn name(&self) -> &str {
        self.model.graph().name()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.model.graph().nodes().len()
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.model.metadata().iter().try_for_each(|(key, value)| dict.set_item(key, value))?;
        Ok(dict)
    }

    #[getter]
    fn bindings(&self) -> Vec<(String, String)> {
        let graph = self.model.graph();
        let name = |value| graph.value_name(value).to_owned();
        graph.bindings().iter().map(|binding| (name(binding.input), name(binding.output))).collect()
    }

    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| graph::inspect(&self.model));
        inspect::dict(py, &report)
    }

    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let faults = py.detach(|| self.model.verify());
        PyList::new(py, faults.into_iter().map(|fault| (fault.path, fault.problem.to_string())))
    }

    /// The names of the main graph's constants.
    fn initializers(&self) -> Vec<String> {
        let graph = self.model.graph();
        graph.initializers().map(|(id, _)| graph.value_name(id).to_owned()).collect()
    }

    /// A constant of the main graph, in place.
    fn initializer<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let graph = self.model.graph();
        let found = graph.initializers().find(|(id, _)| graph.value_name(*id) == name);
        let (_, initializer) = found.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(name.to_owned()))?;
        output::object(py, initializer.value().or_raise(py)?, false)
    }

    /// The model with these bindings (input, output) added and those of these inputs removed.
    fn rebound(&self, py: Python<'_>, bind: Vec<(String, String)>, unbind: Vec<String>) -> PyResult<PyModel> {
        detached(py, || {
            let mut edit = self.model.edit();
            for input in &unbind {
                edit.unbind(input)?;
            }
            for (input, output) in &bind {
                edit.bind(input, output);
            }
            edit.finish()
        })
        .map(PyModel::new)
    }

    /// The model with values renamed and annotations set (or, with None, removed).
    fn edited(
        &self,
        py: Python<'_>,
        rename: Vec<(String, String)>,
        metadata: Vec<(String, Option<String>)>,
    ) -> PyResult<PyModel> {
        detached(py, || {
            let mut edit = self.model.edit();
            for (from, to) in &rename {
                edit.rename(from, to)?;
            }
            for (key, value) in &metadata {
                edit.metadata(key, value.as_deref());
            }
            edit.finish()
        })
        .map(PyModel::new)
    }
}
