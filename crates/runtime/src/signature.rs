//! The inputs, outputs and bindings of a graph, resolved once.

use std::sync::Arc;

use heirloom_graph::Graph;
use heirloom_types::ValueType;
use rustc_hash::FxHashMap;

use crate::declared::{Declared, SymbolNames};
use crate::{Mismatch, SessionError};

/// Names and types of a graph's inputs and outputs.
#[derive(Debug)]
pub(crate) struct Signature {
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub bindings: Vec<Bound>,
    pub symbols: SymbolNames,
    input_index: FxHashMap<Arc<str>, u32>,
    output_index: FxHashMap<Arc<str>, u32>,
}

/// One input.
#[derive(Debug)]
pub(crate) struct Input {
    pub name: Arc<str>,
    pub ty: Option<ValueType>,
    pub declared: Declared,
    /// The binding that supplies it, by index.
    pub binding: Option<u32>,
    /// Whether the graph has an initializer of its name, which a feed overrides.
    pub has_default: bool,
}

/// One output.
#[derive(Debug)]
pub(crate) struct Output {
    pub name: Arc<str>,
    pub ty: Option<ValueType>,
    /// The binding that retains it, by index.
    pub binding: Option<u32>,
}

/// One binding, by indices of input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub input: u32,
    pub output: u32,
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("fewer than 2^32 inputs and outputs")
}

impl Signature {
    pub(crate) fn new(graph: &Graph, free_symbols: bool) -> Result<Signature, SessionError> {
        let mut symbols = SymbolNames::new();
        let mut inputs: Vec<Input> = Vec::with_capacity(graph.inputs().len());
        for &id in graph.inputs() {
            let ty = graph.value_type(id).cloned();
            inputs.push(Input {
                name: graph.shared_name(id).clone(),
                declared: Declared::new(ty.as_ref(), &mut symbols, free_symbols),
                ty,
                binding: None,
                has_default: graph.initializer(id).is_some(),
            });
        }
        let mut outputs: Vec<Output> = graph
            .outputs()
            .iter()
            .map(|&id| Output {
                name: graph.shared_name(id).clone(),
                ty: graph.value_type(id).cloned(),
                binding: None,
            })
            .collect();
        let input_index: FxHashMap<_, _> =
            inputs.iter().enumerate().map(|(at, input)| (input.name.clone(), index(at))).collect();
        let output_index: FxHashMap<_, _> =
            outputs.iter().enumerate().map(|(at, output)| (output.name.clone(), index(at))).collect();
        let mut bindings = Vec::with_capacity(graph.bindings().len());
        for (at, binding) in graph.bindings().iter().enumerate() {
            let input = graph.value_name(binding.input);
            let output = graph.value_name(binding.output);
            let fault = |fault: &str| SessionError::Binding {
                input: input.into(),
                output: output.into(),
                fault: fault.into(),
            };
            let (Some(&i), Some(&o)) = (input_index.get(input), output_index.get(output)) else {
                return Err(fault("it names no input and output of the graph"));
            };
            let (i, o) = (i as usize, o as usize);
            if inputs[i].binding.is_some() || outputs[o].binding.is_some() {
                return Err(fault("its input or output is selected by another binding too"));
            }
            if inputs[i].ty.as_ref().is_some_and(ValueType::contains_strings) {
                return Err(fault("its type holds strings, which cannot be retained"));
            }
            inputs[i].binding = Some(index(at));
            outputs[o].binding = Some(index(at));
            bindings.push(Bound { input: index(i), output: index(o) });
        }
        Ok(Signature { inputs, outputs, bindings, symbols, input_index, output_index })
    }

    pub(crate) fn input(&self, name: &str) -> Option<u32> {
        self.input_index.get(name).copied()
    }

    pub(crate) fn output(&self, name: &str) -> Option<u32> {
        self.output_index.get(name).copied()
    }

    pub(crate) fn input_names(&self, keep: impl Fn(&Input) -> bool) -> Vec<String> {
        self.inputs.iter().filter(|input| keep(input)).map(|input| input.name.to_string()).collect()
    }

    pub(crate) fn output_names(&self) -> Vec<String> {
        self.outputs.iter().map(|output| output.name.to_string()).collect()
    }

    /// Whether `value` fits input `at`, given the symbols of the call so far.
    pub(crate) fn check(
        &self,
        at: u32,
        value: &heirloom_types::Value,
        symbols: &mut crate::declared::Symbols,
    ) -> Result<(), Box<Mismatch>> {
        let other = |by: u32| self.inputs[by as usize].name.to_string();
        self.inputs[at as usize].declared.check(value, at, symbols, &self.symbols, other)
    }
}
