//! Engines: threads and kernels that sessions share.

use std::sync::{Mutex, PoisonError};

use heirloom::{Engine, EngineOptions};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The engine with so many threads; `None` is all processors that the process may use. Sessions that ask for the same
/// number share their threads.
pub(crate) fn shared(_py: Python<'_>, threads: Option<usize>) -> PyResult<Engine> {
    static ENGINES: Mutex<Vec<(Option<usize>, Engine)>> = Mutex::new(Vec::new());
    if threads == Some(0) {
        return Err(PyValueError::new_err("`threads` must be at least 1, or None for all processors"));
    }
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, engine)) = engines.iter().find(|(known, _)| *known == threads) {
        return Ok(engine.clone());
    }
    let engine =
        Engine::new(EngineOptions { threads }).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    engines.push((threads, engine.clone()));
    Ok(engine)
}
