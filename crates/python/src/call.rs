//! What calls of sessions and states have in common: feeds, the released interpreter lock, signals, deadlines, results.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use heirloom::mem::Counts;
use heirloom::runtime::Port;
use heirloom::types::ValueType;
use heirloom::{CallOptions, CancelToken, Feeds, Outputs, RunError, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping};

use crate::error::{OrRaise, Raise};
use crate::foreign;
use crate::{input, output};

/// Feeds as Python gave them, their arrays in place.
pub(crate) struct PyFeeds(Vec<(PyBackedStr, Value)>);

impl PyFeeds {
    /// Reads a dict of names and values; `ty` tells the declared type of a name.
    pub(crate) fn read<'t>(
        feeds: &Bound<'_, PyAny>,
        kind: &str,
        ty: impl Fn(&str) -> Option<&'t ValueType>,
    ) -> PyResult<PyFeeds> {
        let mut entries = Vec::new();
        let mut push = |name: Bound<'_, PyAny>, value: Bound<'_, PyAny>| -> PyResult<()> {
            let name: PyBackedStr = name.extract()?;
            let value = input::value(&value, ty(&name), &format!("{kind} `{}`", &*name))?;
            entries.push((name, value));
            Ok(())
        };
        if let Ok(dict) = feeds.cast::<PyDict>() {
            for (name, value) in dict {
                push(name, value)?;
            }
        } else {
            for item in feeds.cast::<PyMapping>()?.items()? {
                let (name, value) = item.extract()?;
                push(name, value)?;
            }
        }
        Ok(PyFeeds(entries))
    }

    /// The feeds; the names stay with `self`.
    pub(crate) fn feeds(&mut self) -> Feeds<'_> {
        self.0
            .iter_mut()
            .map(|(name, value)| (&**name, std::mem::replace(value, Value::Optional(None))))
            .collect()
    }
}

/// The declared type of a port by name.
pub(crate) fn type_of<'p>(ports: &'p [Port], name: &str) -> Option<&'p ValueType> {
    ports.iter().find(|port| port.name == name).and_then(|port| port.ty.as_ref())
}

/// Stops calls from outside. One token may be given to any number of calls.
#[pyclass(frozen, name = "CancelToken", module = "heirloom")]
#[derive(Default)]
pub(crate) struct PyCancelToken(pub(crate) CancelToken);

#[pymethods]
impl PyCancelToken {
    /// A token that stops nothing yet.
    #[new]
    fn py_new() -> PyCancelToken {
        PyCancelToken::default()
    }

    /// Stops the calls that hold this token, and later ones. May be called from any thread.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Makes the token usable for later calls.
    fn reset(&self) {
        self.0.reset();
    }

    /// Whether a stop was asked for.
    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn __repr__(&self) -> &'static str {
        if self.0.is_cancelled() { "heirloom.CancelToken(cancelled)" } else { "heirloom.CancelToken()" }
    }
}

/// How often a call on the main thread lets Python handle signals.
const SIGNALS: Duration = Duration::from_millis(20);

/// The token of one call, and the exception of a signal handler that stopped it.
pub(crate) struct Watched {
    pub(crate) token: CancelToken,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Watched {
    /// A token that obeys `given`, the time limit, and on the main thread the signals that Python handles: Ctrl-C stops
    /// the call, and the handler's exception is raised.
    pub(crate) fn new(
        py: Python<'_>,
        given: Option<&Bound<'_, PyCancelToken>>,
        timeout: Option<f64>,
    ) -> PyResult<Watched> {
        let mut token = given.map(|given| given.get().0.clone()).unwrap_or_default();
        if let Some(seconds) = timeout {
            let limit = Duration::try_from_secs_f64(seconds)
                .map_err(|_| PyValueError::new_err(format!("`timeout` is in seconds, not {seconds}")))?;
            token = token.with_deadline(Instant::now() + limit);
        }
        let raised = Arc::new(Mutex::new(None));
        if is_main_thread(py)? {
            token = token.with_probe(signals(std::thread::current().id(), raised.clone()));
        }
        Ok(Watched { token, raised })
    }

    /// The exception of the signal handler, if there was one.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn signals(caller: ThreadId, raised: Arc<Mutex<Option<PyErr>>>) -> impl Fn() -> bool + Send + Sync + 'static {
    let next = Mutex::new(Instant::now() + SIGNALS);
    move || {
        if std::thread::current().id() != caller {
            return raised.try_lock().is_ok_and(|raised| raised.is_some());
        }
        let now = Instant::now();
        {
            let Ok(mut next) = next.try_lock() else { return false };
            if now < *next {
                return raised.try_lock().is_ok_and(|raised| raised.is_some());
            }
            *next = now + SIGNALS;
        }
        let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) else { return false };
        *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        true
    }
}

/// Whether this is Python's main thread, the one that handles signals.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static MAIN: PyOnceLock<ThreadId> = PyOnceLock::new();
    thread_local!(static IS_MAIN: std::cell::Cell<Option<bool>> = const { std::cell::Cell::new(None) });
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    let threading = py.import("threading")?;
    let main: u64 = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
    let own: u64 = threading.call_method0("get_ident")?.extract()?;
    let is_main = main == own;
    if is_main {
        MAIN.get_or_init(py, || std::thread::current().id());
    }
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

/// One call with the interpreter's lock released, and its outputs.
pub(crate) fn call<'py>(
    py: Python<'py>,
    wanted: Option<Vec<String>>,
    watched: &Watched,
    run: impl FnOnce(&CallOptions<'_>) -> Result<Outputs, RunError> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let names: Option<Vec<&str>> = wanted.as_ref().map(|names| names.iter().map(|name| &**name).collect());
    let options =
        CallOptions { cancel: Some(&watched.token), outputs: names.as_deref(), ..CallOptions::default() };
    let result = py.detach(|| run(&options));
    foreign::release(py);
    let outputs = match result {
        Ok(outputs) => outputs,
        Err(error) => return Err(watched.raised().unwrap_or_else(|| error.raise(py))),
    };
    into_dict(py, outputs)
}

fn into_dict(py: Python<'_>, outputs: Outputs) -> PyResult<Bound<'_, PyDict>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("heirloom._arrays")?.getattr("Outputs")?.unbind())
    })?;
    let made = class.bind(py).call0()?;
    made.setattr("counts", Py::new(py, PyCounts(outputs.counts()))?)?;
    let dict = made.cast_into::<PyDict>()?;
    for item in outputs.into_values() {
        dict.set_item(&*item.name, output::object(py, item.value, item.is_exclusive)?)?;
    }
    Ok(dict)
}

/// What calls did with memory.
#[pyclass(frozen, eq, name = "Counts", module = "heirloom")]
#[derive(PartialEq)]
pub(crate) struct PyCounts(pub(crate) Counts);

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyCounts {
            $($(#[$doc])* #[getter] fn $name(&self) -> u64 { self.0.$name })*

            fn __repr__(&self) -> String {
                let all = [$((stringify!($name), self.0.$name)),*];
                let shown: Vec<String> =
                    all.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}")).collect();
                format!("heirloom.Counts({})", shown.join(", "))
            }
        }
    };
}
counts! {
    /// Payload bytes copied to manage state. Always 0.
    state_copied_bytes,
    /// Payload bytes that operators copied: making strided values dense, Concat, Gather, Transpose and the like.
    kernel_copied_bytes,
    /// Rows that were copied because a cache had to move.
    cache_copied_bytes,
    /// Bytes that appends wrote behind the rows that were there.
    appended_bytes,
    /// Buffers newly allocated.
    allocations,
    /// Bytes of the buffers newly allocated.
    allocated_bytes,
    /// Caches among the allocations.
    cache_allocations,
    /// Bytes of the caches newly allocated (capacity, not use).
    cache_allocated_bytes,
    /// Buffers taken again from a pool instead of being allocated.
    reuses,
    /// Decoders that came with a file and were run.
    decoder_runs,
}

/// Runs `work` with the interpreter's lock released, then gives back what it let go of.
pub(crate) fn detached<T: Send, E: Raise + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let result = py.detach(work);
    foreign::release(py);
    result.or_raise(py)
}
