//! Persistent bindings: which output supplies which input of the next call.

use heirloom_proto::{GraphProto, PersistentBindingProto};
use heirloom_types::ValueType;

use crate::path::{FaultList, Path};
use crate::{Binding, Graph, Problem, ValueId, agree};

/// A main graph's bindings. A faulty one is listed and left out.
pub(crate) fn resolve(
    proto: &GraphProto,
    graph: &Graph,
    faults: &mut FaultList,
    path: &Path<'_>,
) -> Vec<Binding> {
    let mut bindings: Vec<Binding> = Vec::with_capacity(proto.persistent_bindings().len());
    let mut taken = Taken::default();
    for (index, binding) in proto.persistent_bindings().iter().enumerate() {
        let path = path.index("persistent_bindings", index);
        let (sound, problems) = check(binding, graph, &mut taken);
        problems.into_iter().for_each(|problem| faults.push(&path, problem));
        bindings.extend(sound);
    }
    bindings
}

/// Which values are bound already, and by which binding.
#[derive(Default)]
struct Taken {
    inputs: rustc_hash::FxHashMap<String, String>,
    outputs: rustc_hash::FxHashMap<String, String>,
}

/// A binding as people write it.
pub(crate) fn show(input: &str, output: &str) -> String {
    format!("{input} <- {output}")
}

fn check(
    binding: &PersistentBindingProto,
    graph: &Graph,
    taken: &mut Taken,
) -> (Option<Binding>, Vec<Problem>) {
    let (input, output) = (String::from(binding.input_name()), String::from(binding.output_name()));
    let mut problems = Vec::new();
    for (what, name, map) in [("input", &input, &mut taken.inputs), ("output", &output, &mut taken.outputs)] {
        if let Some(first) = map.get(name) {
            let (input, output, first) = (input.clone(), output.clone(), first.clone());
            problems.push(Problem::BindingTwice { input, output, what, first });
        } else {
            map.insert(name.clone(), show(&input, &output));
        }
    }
    let find = |name: &str, among: &[ValueId]| {
        graph.value(name).filter(|value| !name.is_empty() && among.contains(value))
    };
    let names = |values: &[ValueId]| values.iter().map(|&value| graph.value_name(value).into()).collect();
    let from = find(&input, graph.inputs());
    if from.is_none() {
        let (input, output, inputs) = (input.clone(), output.clone(), names(graph.inputs()));
        problems.push(Problem::BindingInput { input, output, inputs });
    }
    let to = find(&output, graph.outputs());
    if to.is_none() {
        let (input, output, outputs) = (input.clone(), output.clone(), names(graph.outputs()));
        problems.push(Problem::BindingOutput { input, output, outputs });
    }
    let (Some(from), Some(to)) = (from, to) else { return (None, problems) };
    problems.extend(types(&input, &output, graph.value_type(from), graph.value_type(to)));
    if problems.is_empty() { (Some(Binding { input: from, output: to }), problems) } else { (None, problems) }
}

/// What forbids a binding between values of two types; nothing where a type is not declared.
pub(crate) fn types(
    input: &str,
    output: &str,
    input_type: Option<&ValueType>,
    output_type: Option<&ValueType>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, ty) in [(input, input_type), (output, output_type)] {
        let Some(ty) = ty else { continue };
        let (input, output, value, shown) = (input.into(), output.into(), name.into(), ty.to_string());
        if ty.contains_strings() {
            problems.push(Problem::BindingStrings { input, output, value, ty: shown });
        } else if !can_be_kept(ty) {
            problems.push(Problem::BindingKind { input, output, value, ty: shown });
        }
    }
    if let (Some(a), Some(b)) = (input_type, output_type)
        && let Some(reason) = agree::difference(a, b)
    {
        problems.push(Problem::BindingTypes {
            input: input.into(),
            output: output.into(),
            input_type: a.to_string().into(),
            output_type: b.to_string().into(),
            reason: reason.into(),
        });
    }
    problems
}

/// Whether a session has values of the type.
fn can_be_kept(ty: &ValueType) -> bool {
    match ty {
        ValueType::Sparse(_) | ValueType::Opaque { .. } => false,
        ValueType::Sequence(element) | ValueType::Optional(element) => can_be_kept(element),
        ValueType::Map { value, .. } => can_be_kept(value),
        _ => true,
    }
}

/// What forbids a binding of an input from an output, by their declared types; nothing where a type is not declared.
pub fn binding_problems(
    input: &str,
    output: &str,
    input_type: Option<&ValueType>,
    output_type: Option<&ValueType>,
) -> Vec<Problem> {
    types(input, output, input_type, output_type)
}
