//! Sessions and states.

use std::path::PathBuf;
use std::sync::Arc;

use heirloom::runtime::{Port, Report};
use heirloom::{CachePolicy, Decode, Prepack, PreparedStore, Session, SessionOptions, State, StoreOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::{PyCancelToken, PyCounts, PyFeeds, Watched, call, detached, type_of};
use crate::engine;
use crate::foreign::{self, ReleaseOnDrop};
use crate::model::PyModel;
use crate::output;
use crate::ports;

/// What a session or a state holds and did.
#[pyclass(frozen, get_all, name = "Report", module = "heirloom")]
pub(crate) struct PyReport {
    /// Calls that succeeded.
    calls: u64,
    /// Copies, appends, allocations and reuses of all calls so far, failed ones too.
    counts: Py<PyCounts>,
    /// Bytes that the retained values hold. Values that share memory count each.
    retained_bytes: u64,
    /// Bytes of the buffers behind the retained values, reserved capacity of caches included.
    reserved_bytes: u64,
    /// Bytes of working memory that the session keeps between calls, shared by all its states.
    scratch_bytes: u64,
}

#[pymethods]
impl PyReport {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "heirloom.Report(calls={}, retained_bytes={}, reserved_bytes={}, scratch_bytes={}, counts={})",
            self.calls,
            self.retained_bytes,
            self.reserved_bytes,
            self.scratch_bytes,
            self.counts.bind(py).repr()?
        ))
    }
}

fn report(py: Python<'_>, report: &Report) -> PyResult<PyReport> {
    Ok(PyReport {
        calls: report.calls,
        counts: Py::new(py, PyCounts(report.counts))?,
        retained_bytes: report.retained_bytes,
        reserved_bytes: report.reserved_bytes,
        scratch_bytes: report.scratch_bytes,
    })
}

#[pyclass(frozen, name = "Session", module = "heirloom._native")]
pub(crate) struct PySession {
    session: Session,
    threads: usize,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    _release: ReleaseOnDrop,
}

#[pymethods]
impl PySession {
    #[new]
    #[pyo3(signature = (model, *, threads, decode, prepack, reserve, growth))]
    fn py_new(
        py: Python<'_>,
        model: &Bound<'_, PyModel>,
        threads: Option<usize>,
        decode: &str,
        prepack: Option<usize>,
        reserve: Option<usize>,
        growth: Option<f32>,
    ) -> PyResult<PySession> {
        let decode = match decode {
            "off" => Decode::Off,
            "on_demand" => Decode::OnDemand,
            other => {
                let message = format!("`decode` is \"off\" or \"on_demand\", not {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        if growth.is_some_and(|growth| growth.is_nan() || growth < 1.0) {
            return Err(PyValueError::new_err(
                "`growth` is a factor of at least 1, or None for a fixed capacity",
            ));
        }
        let engine = engine::shared(py, threads)?;
        let usual = CachePolicy::default();
        let cache = CachePolicy { reserve: reserve.unwrap_or(usual.reserve), growth, ..usual };
        let prepack = match prepack {
            None => Prepack::Off,
            Some(bytes) => {
                let options =
                    StoreOptions { budget: (bytes < usize::MAX).then_some(bytes), ..StoreOptions::default() };
                let store = PreparedStore::new(options).map_err(|e| PyValueError::new_err(e.to_string()))?;
                Prepack::On(Arc::new(store))
            }
        };
        let options = SessionOptions { cache, decode, prepack, ..engine.session_options() };
        let model = model.get().model().clone();
        let session = detached(py, || Session::new(model, engine.registry(), options))?;
        let (inputs, outputs) = (session.inputs().collect(), session.outputs().collect());
        Ok(PySession { session, threads: engine.threads(), inputs, outputs, _release: ReleaseOnDrop })
    }

    #[getter]
    fn threads(&self) -> usize {
        self.threads
    }

    #[pyo3(signature = (feeds, outputs, cancel, timeout))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        outputs: Option<Vec<String>>,
        cancel: Option<&Bound<'py, PyCancelToken>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut feeds = PyFeeds::read(feeds, "input", |name| type_of(&self.inputs, name))?;
        let watched = Watched::new(py, cancel, timeout)?;
        call(py, outputs, &watched, |options| self.session.run(feeds.feeds(), options))
    }

    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports::list(py, &self.inputs)
    }

    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports::list(py, &self.outputs)
    }

    fn state_spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ports::slots(py, &self.session.state_spec())
    }

    fn zeros<'py>(&self, py: Python<'py>, extents: Vec<(String, usize)>) -> PyResult<Bound<'py, PyDict>> {
        let extents: Vec<(&str, usize)> = extents.iter().map(|(name, n)| (&**name, *n)).collect();
        let zeros = detached(py, || self.session.zeros(&extents))?;
        let dict = PyDict::new(py);
        for (name, value) in zeros {
            dict.set_item(name, output::object(py, value, true)?)?;
        }
        Ok(dict)
    }

    fn make_state(&self, py: Python<'_>, initial: &Bound<'_, PyAny>) -> PyResult<PyState> {
        let mut initial = self.initial(initial)?;
        let state = detached(py, || self.session.make_state(initial.feeds()))?;
        Ok(PyState { state, inputs: self.inputs.clone(), _release: ReleaseOnDrop })
    }

    fn load_state(&self, py: Python<'_>, path: PathBuf) -> PyResult<PyState> {
        let state = detached(py, || self.session.load_state(path))?;
        Ok(PyState { state, inputs: self.inputs.clone(), _release: ReleaseOnDrop })
    }

    fn report(&self, py: Python<'_>) -> PyResult<PyReport> {
        report(py, &self.session.report())
    }

    fn trim(&self, py: Python<'_>) {
        py.detach(|| self.session.trim());
        foreign::release(py);
    }
}

impl PySession {
    fn initial(&self, initial: &Bound<'_, PyAny>) -> PyResult<PyFeeds> {
        PyFeeds::read(initial, "initial value of", |name| type_of(&self.inputs, name))
    }
}

#[pyclass(frozen, name = "State", module = "heirloom._native")]
pub(crate) struct PyState {
    state: State,
    inputs: Vec<Port>,
    _release: ReleaseOnDrop,
}

#[pymethods]
impl PyState {
    #[pyo3(signature = (feeds, outputs, cancel, timeout))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        outputs: Option<Vec<String>>,
        cancel: Option<&Bound<'py, PyCancelToken>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut feeds = PyFeeds::read(feeds, "input", |name| type_of(&self.inputs, name))?;
        let watched = Watched::new(py, cancel, timeout)?;
        call(py, outputs, &watched, |options| self.state.run(feeds.feeds(), options))
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = detached(py, || self.state.values())?;
        let dict = PyDict::new(py);
        for (name, value) in values.iter() {
            dict.set_item(name, output::object(py, value.clone(), false)?)?;
        }
        Ok(dict)
    }

    fn reset(&self, py: Python<'_>, initial: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut initial = PyFeeds::read(initial, "initial value of", |name| type_of(&self.inputs, name))?;
        detached(py, || self.state.reset(initial.feeds()))
    }

    fn truncate(&self, py: Python<'_>, rows: usize) -> PyResult<()> {
        detached(py, || self.state.truncate(rows))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<PyState> {
        let state = detached(py, || self.state.fork())?;
        Ok(PyState { state, inputs: self.inputs.clone(), _release: ReleaseOnDrop })
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || self.state.save(path))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.state.close())
    }

    #[getter]
    fn closed(&self) -> bool {
        self.state.is_closed()
    }

    fn report(&self, py: Python<'_>) -> PyResult<PyReport> {
        let figures = py.detach(|| self.state.report());
        report(py, &figures)
    }
}
