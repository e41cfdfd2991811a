//! One case: a model, its inputs, and what it must give.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heirloom::graph::{Graph, ValueId};
use heirloom::types::ValueType;
use heirloom::{CachePolicy, CallOptions, Engine, Feeds, Model, OpenOptions, Value};

use crate::compare::{self, Tolerance};
use crate::values;

const EXACT: Tolerance = Tolerance { relative: 0.0, absolute: 0.0 };

pub(crate) struct Case {
    /// `VERSION/KIND/NAME`.
    pub(crate) path: String,
    folder: PathBuf,
}

/// What became of a case.
pub(crate) struct Verdict {
    /// Why it does not pass.
    pub(crate) failure: Option<String>,
    /// The operators in the model, those of bodies and functions too.
    pub(crate) operators: BTreeSet<String>,
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let list = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// All cases of a suite.
pub(crate) fn all(suite: &Path) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for version in entries(suite)?.into_iter().filter(|path| path.is_dir()) {
        for kind in entries(&version)? {
            for folder in entries(&kind)? {
                let path = format!("{}/{}/{}", name(&version), name(&kind), name(&folder));
                cases.push(Case { path, folder });
            }
        }
    }
    Ok(cases)
}

impl Case {
    pub(crate) fn run(&self, engine: &Engine) -> Verdict {
        let mut operators = BTreeSet::new();
        let result = catch_unwind(AssertUnwindSafe(|| self.check(engine, &mut operators)));
        let failure = match result {
            Ok(result) => result.err(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Some(format!("panic: {}", text.unwrap_or_default()))
            }
        };
        Verdict { failure, operators }
    }

    fn check(&self, engine: &Engine, operators: &mut BTreeSet<String>) -> Result<(), String> {
        let file = self.folder.join("model.onnx");
        let model = Model::open(&file, &OpenOptions::default()).map_err(|error| chain(&error))?;
        let model = Arc::new(model);
        collect(model.graph(), operators);
        model.functions().iter().for_each(|function| collect(function.body(), operators));
        let session = engine.session(model.clone(), CachePolicy::default()).map_err(|error| chain(&error))?;
        let tolerance = self.tolerance()?;
        for data in entries(&self.folder)?.into_iter().filter(|path| path.is_dir()) {
            let graph = model.graph();
            let inputs = inputs(graph, &data);
            let mut feeds = Vec::new();
            for (index, &input) in inputs.iter().enumerate() {
                if let Some(value) = read(&data.join(format!("input_{index}.pb")), graph.value_type(input))? {
                    feeds.push((graph.value_name(input), value));
                }
            }
            let run =
                |feeds: Feeds<'_>| session.run(feeds, &CallOptions::default()).map_err(|error| chain(&error));
            let outputs = run(feeds.iter().cloned().collect())?;
            for (index, &output) in graph.outputs().iter().enumerate() {
                let file = data.join(format!("output_{index}.pb"));
                let Some(expected) = read(&file, graph.value_type(output))? else { continue };
                let name = graph.value_name(output);
                let actual = outputs.get(name).ok_or_else(|| format!("no output `{name}`"))?;
                compare::values(actual, &expected, tolerance).map_err(|what| format!("`{name}`: {what}"))?;
            }
            // The same elements at other places in memory give the same results.
            let apart = feeds.iter().map(|(name, value)| (*name, values::apart(value)));
            let again = run(apart.collect()).map_err(|what| format!("with strided inputs: {what}"))?;
            for (name, expected) in outputs.iter() {
                let actual = again.get(name).ok_or_else(|| format!("no output `{name}`"))?;
                compare::values(actual, expected, EXACT)
                    .map_err(|what| format!("`{name}` with strided inputs: {what}"))?;
            }
        }
        Ok(())
    }

    fn tolerance(&self) -> Result<Tolerance, String> {
        let text = std::fs::read_to_string(self.folder.join("tolerance.txt")).map_err(|e| e.to_string())?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [relative, absolute] => Ok(Tolerance { relative, absolute }),
            _ => Err(format!("`{}` is no tolerance", text.trim())),
        }
    }
}

/// The inputs that the files are for: in old models initializers are listed as inputs too and have none.
fn inputs(graph: &Graph, data: &Path) -> Vec<ValueId> {
    let required: Vec<ValueId> = graph.required_inputs().collect();
    let more = data.join(format!("input_{}.pb", required.len())).exists();
    if more { Vec::from(graph.inputs()) } else { required }
}

/// The value in a file; `None` where there is no file.
fn read(file: &Path, ty: Option<&ValueType>) -> Result<Option<Value>, String> {
    if !file.exists() {
        return Ok(None);
    }
    let bytes = heirloom::mem::Bytes::map_file(file).map_err(|error| chain(&error))?;
    values::decode(bytes, ty).map(Some).map_err(|error| format!("{}: {error}", name(file)))
}

fn collect(graph: &Graph, operators: &mut BTreeSet<String>) {
    for node in graph.nodes() {
        let domain = match &*node.domain {
            "" | "ai.onnx" => String::new(),
            domain => format!("{domain}."),
        };
        operators.insert(format!("{domain}{}", node.op_type));
        node.bodies().for_each(|body| collect(body, operators));
    }
}

/// An error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
