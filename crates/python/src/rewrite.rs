//! What looks through and rewrites whole graphs: inference, passes, standard ONNX.

use heirloom::infer::{InferOptions, ShapesContext};
use heirloom::passes::lower::{LowerError, Weights, check_standard, lower};
use heirloom::passes::pass::{PASSES, Pass, PassError, optimize as run_passes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::detached;
use crate::engine;
use crate::error::{Raise, Raised};
use crate::model::PyModel;

impl Raise for LowerError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        let new = |kind| Raised::new(py, "ConvertError", kind, self);
        match self {
            LowerError::Losses(losses) => {
                let losses: Vec<(String, String)> =
                    losses.iter().map(|loss| (loss.name.clone(), loss.to_string())).collect();
                new("losses").with("losses", losses).err()
            }
            LowerError::Value { value, reason } => {
                new("value").with("value", value).with("reason", reason).err()
            }
            LowerError::Model(error) => error.raise(py),
            _ => new("other").err(),
        }
    }
}

impl Raise for PassError {
    fn raise(&self, py: Python<'_>) -> PyErr {
        Raised::new(py, "ConvertError", "pass", self).err()
    }
}

/// The type of each value by graph (the main graph's name is empty) and name, contradictions, and operators without a
/// rule.
#[pyfunction]
#[pyo3(signature = (model, ignore_declared))]
#[expect(clippy::type_complexity, reason = "what the Python side makes a class of")]
pub(crate) fn infer<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    ignore_declared: bool,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>, Vec<(String, String, usize)>)> {
    let model = model.get().model();
    let options = InferOptions::default().ignore_declared(ignore_declared);
    let context = py.detach(|| ShapesContext::infer(model, &options));
    let graphs = PyDict::new(py);
    let mut failed = Ok(());
    context.each(model, &mut |place, graph, scope| {
        let types = PyDict::new(py);
        let each = graph.values().try_for_each(|value| {
            types.set_item(graph.value_name(value), scope.fact(value).ty.as_ref().map(ToString::to_string))
        });
        if let Err(error) = each.and_then(|()| graphs.set_item(place, types)) {
            failed = Err(error);
        }
    });
    failed?;
    let conflicts = context.conflicts().iter().map(ToString::to_string).collect();
    let unknown = context
        .unknown_operators()
        .map(|(domain, name, count)| (domain.to_string(), name.to_string(), count))
        .collect();
    Ok((graphs, conflicts, unknown))
}

/// The model after passes, with a report of each; `None` takes all that change no bit of consequence.
#[pyfunction]
#[pyo3(signature = (model, passes))]
pub(crate) fn optimize<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    passes: Option<Vec<String>>,
) -> PyResult<(PyModel, Bound<'py, PyList>)> {
    let known = |name: &str| PASSES.iter().copied().find(|pass| pass.name == name);
    let passes: Vec<Pass> = match &passes {
        None => PASSES.iter().copied().filter(|pass| pass.by_default).collect(),
        Some(names) => names
            .iter()
            .map(|name| {
                known(name).ok_or_else(|| {
                    let all: Vec<_> = PASSES.iter().map(|pass| format!("\"{}\"", pass.name)).collect();
                    PyValueError::new_err(format!("there is no pass {name:?}; there are {}", all.join(", ")))
                })
            })
            .collect::<PyResult<_>>()?,
    };
    let engine = engine::shared(py, None)?;
    let model = model.get().model();
    let copy = detached(py, || model.edit().finish())?;
    let (model, reports) = detached(py, || run_passes(copy, &passes, Some(&engine)))?;
    let list = PyList::empty(py);
    for report in reports {
        let dict = PyDict::new(py);
        dict.set_item("name", report.name)?;
        dict.set_item("nodes_removed", report.nodes)?;
        dict.set_item("nodes_made", report.put)?;
        dict.set_item("constants_removed", report.constants)?;
        dict.set_item("constants_made", report.made)?;
        dict.set_item("opset", report.opset)?;
        list.append(dict)?;
    }
    Ok((PyModel::new(model), list))
}

/// The model in standard ONNX (`None` where it is that already and must be), the pairs that bindings were, and what encoded values became.
#[pyfunction]
#[pyo3(signature = (model, lowered, dense))]
#[expect(clippy::type_complexity, reason = "what the Python side makes a class of")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    lowered: bool,
    dense: bool,
) -> PyResult<(Option<PyModel>, Vec<(String, String)>, Vec<(String, &'static str)>)> {
    let model = model.get().model();
    if !lowered {
        detached(py, || check_standard(model))?;
        return Ok((None, Vec::new(), Vec::new()));
    }
    let engine = engine::shared(py, None)?;
    let weights = if dense { Weights::Dense } else { Weights::Nodes };
    let lowered = detached(py, || lower(model, weights, &engine))?;
    Ok((Some(PyModel::new(lowered.model)), lowered.pairs, lowered.weights))
}
