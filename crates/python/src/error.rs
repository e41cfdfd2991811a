//! Errors of the crates below as exceptions of the package: a class for each family, a `kind` for the case, and the
//! fields as attributes.

use heirloom::graph;
use heirloom::runtime::{Mismatch, NodeFaultKind, SessionError};
use heirloom::{DecodeError, RunError, StateError};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An exception in the making.
pub(crate) struct Raised<'py> {
    py: Python<'py>,
    class: &'static str,
    message: String,
    fields: Vec<(&'static str, Py<PyAny>)>,
}

impl<'py> Raised<'py> {
    /// An exception of the class `class` of `heirloom.errors`; `kind` says which case it is.
    pub(crate) fn new(
        py: Python<'py>,
        class: &'static str,
        kind: &str,
        message: impl ToString,
    ) -> Raised<'py> {
        Raised { py, class, message: message.to_string(), fields: Vec::new() }.with("kind", kind)
    }

    /// An attribute of it.
    pub(crate) fn with(mut self, name: &'static str, value: impl IntoPyObject<'py>) -> Raised<'py> {
        if let Ok(value) = value.into_py_any(self.py) {
            self.fields.push((name, value));
        }
        self
    }

    /// The exception.
    pub(crate) fn err(self) -> PyErr {
        let made = || -> PyResult<PyErr> {
            let class = errors(self.py)?.bind(self.py).getattr(self.class)?.cast_into::<PyType>()?;
            let instance = class.call1((&self.message,))?;
            for (name, value) in &self.fields {
                instance.setattr(*name, value)?;
            }
            Ok(PyErr::from_value(instance))
        };
        made().unwrap_or_else(|error| error)
    }
}

fn errors(py: Python<'_>) -> PyResult<&Py<PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || Ok(py.import("heirloom.errors")?.unbind()))
}

/// An error that becomes an exception.
pub(crate) trait Raise {
    /// The exception.
    fn raise(&self, py: Python<'_>) -> PyErr;
}

/// Turns the error of a result into an exception.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Raise> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.raise(py))
    }
}

fn mismatch<'py>(raised: Raised<'py>, mismatch: &Mismatch) -> Raised<'py> {
    match mismatch {
        Mismatch::Kind { expected, actual } | Mismatch::Layout { expected, actual } => {
            raised.with("expected", expected).with("actual", actual)
        }
        Mismatch::DType { expected, actual } => {
            raised.with("expected", expected.name()).with("actual", actual.name())
        }
        Mismatch::Shape { expected, actual } => raised.with("expected", expected).with("actual", actual),
        Mismatch::Symbol { axis, symbol, expected, actual, other, shape } => raised
            .with("axis", *axis)
            .with("symbol", symbol)
            .with("expected", *expected)
            .with("actual", *actual)
            .with("other", other)
            .with("shape", shape),
        Mismatch::Within { path, inner } => self::mismatch(raised.with("path", path), inner),
        _ => raised,
    }
}

impl Raise for RunError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "RunError", kind, self);
        match self {
            RunError::MissingFeeds { missing, known } => {
                new("missing_feeds").with("missing", missing).with("known", known)
            }
            RunError::UnknownFeeds { unknown, known } => {
                new("unknown_feeds").with("unknown", unknown).with("known", known)
            }
            RunError::FeedsRetained { name } => new("feeds_retained").with("name", name),
            RunError::FedTwice { name } => new("fed_twice").with("name", name),
            RunError::UnknownOutput { name, known } => {
                new("unknown_output").with("name", name).with("known", known)
            }
            RunError::Input { name, mismatch } => self::mismatch(new("input").with("name", name), mismatch),
            RunError::Node { node, op, source } => {
                new("node").with("node", node).with("op", op).with("reason", source.to_string())
            }
            RunError::Cancelled { node } => {
                Raised::new(py, "CancelledError", "cancelled", self).with("node", node)
            }
            RunError::Lent { output } => new("lent").with("output", output),
            RunError::Retained { output, input, mismatch } => {
                self::mismatch(new("retained").with("output", output).with("input", input), mismatch)
            }
            RunError::Busy => Raised::new(py, "BusyError", "busy", self),
            RunError::Closed => Raised::new(py, "ClosedError", "closed", self),
            _ => new("rebind"),
        }
        .err()
    }
}

impl Raise for StateError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "StateError", kind, self);
        match self {
            StateError::Stateless => new("stateless"),
            StateError::Missing { missing } => new("missing").with("missing", missing),
            StateError::Unknown { unknown, known } => {
                new("unknown").with("unknown", unknown).with("known", known)
            }
            StateError::Twice { name } => new("twice").with("name", name),
            StateError::Value { name, mismatch } => self::mismatch(new("value").with("name", name), mismatch),
            StateError::Extent { name, symbol } => new("extent").with("name", name).with("symbol", symbol),
            StateError::Unfit { name, reason } => new("unfit").with("name", name).with("reason", reason),
            StateError::Snapshot { path, source } => {
                new("file").with("path", path.display().to_string()).with("reason", source.to_string())
            }
            StateError::Busy => Raised::new(py, "BusyError", "busy", self),
            StateError::Closed => Raised::new(py, "ClosedError", "closed", self),
            _ => new("other"),
        }
        .err()
    }
}

impl Raise for SessionError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "SessionError", kind, self);
        match self {
            SessionError::Nodes(faults) => {
                let nodes: Vec<(String, String, String)> = faults
                    .iter()
                    .map(|fault| (fault.node.clone(), fault.op.clone(), fault.kind.to_string()))
                    .collect();
                let missing = faults.iter().find_map(|fault| match &fault.kind {
                    NodeFaultKind::MissingConsumer { value, layout, type_id, .. } => {
                        Some((value.clone(), layout.clone(), *type_id))
                    }
                    _ => None,
                });
                let raised =
                    new(if missing.is_some() { "missing_consumer" } else { "nodes" }).with("nodes", nodes);
                match missing {
                    Some((value, layout, type_id)) => {
                        raised.with("value", value).with("layout", layout).with("type_id", type_id)
                    }
                    None => raised,
                }
            }
            SessionError::Binding { input, output, fault } => {
                new("binding").with("input", input).with("output", output).with("reason", fault)
            }
            SessionError::Undefined { node, op, value } => {
                new("undefined").with("node", node).with("op", op).with("value", value)
            }
            SessionError::Initializer { name, fault } => {
                new("initializer").with("name", name).with("reason", fault)
            }
            _ => new("too_large"),
        }
        .err()
    }
}

impl Raise for graph::Error {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "ModelError", kind, self);
        match self {
            graph::Error::Invalid { file, faults } => {
                let faults: Vec<(String, String)> =
                    faults.0.iter().map(|fault| (fault.path.clone(), fault.problem.to_string())).collect();
                new("invalid")
                    .with("path", file.as_ref().map(|f| f.display().to_string()))
                    .with("faults", faults)
            }
            graph::Error::Unavailable(why) => new("unavailable")
                .with("name", &why.name)
                .with("location", &why.location)
                .with("reason", &why.reason),
            graph::Error::Call { call, problem } => {
                new("call").with("call", call).with("reason", problem.to_string())
            }
            graph::Error::ExternalElsewhere { path, location } => {
                new("external_elsewhere").with("path", path.display().to_string()).with("location", location)
            }
            graph::Error::Write { path, .. } => new("write").with("path", path.display().to_string()),
            graph::Error::Folder { .. } => new("folder"),
            graph::Error::SparseValue { shape } => new("sparse").with("shape", Vec::from(&shape[..])),
            _ => new("read"),
        }
        .err()
    }
}

impl Raise for DecodeError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        Raised::new(py, "DecodeError", "decode", self).err()
    }
}

impl Raise for heirloom::OpenError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            heirloom::OpenError::Model(error) => error.raise(py),
            heirloom::OpenError::Session(error) => error.raise(py),
            other => Raised::new(py, "HeirloomError", "other", other).err(),
        }
    }
}

/// An array that cannot be used where it lies: `LayoutError` with the reason and the remedy.
pub(crate) fn layout(py: Python<'_>, what: &str, reason: &str, remedy: &str) -> PyErr {
    let message =
        format!("{what} cannot be used without a copy: {reason}; if a copy is fine, make it: `{remedy}`");
    Raised::new(py, "LayoutError", "layout", message).with("reason", reason).with("remedy", remedy).err()
}
