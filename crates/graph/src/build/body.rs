//! Graphs in the making: a model's main one, or a body.

use std::fmt;
use std::sync::Arc;

use heirloom_proto::{GraphProto, PersistentBindingProto, ValueInfoProto};
use heirloom_types::ValueType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::node::{Core, NodeBuilder, Within, entry};
use super::scope::{Common, Scope};
use crate::{Error, Problem, agree, bindings};

/// A value of a graph in the making: its name. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Var(Arc<str>);

impl Var {
    pub(super) fn new(name: Arc<str>) -> Var {
        Var(name)
    }

    /// The value's name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Var {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A graph in the making: the main graph of a [`ModelBuilder`](crate::ModelBuilder), or a body made by
/// [`body`](GraphBuilder::body).
#[derive(Debug)]
pub struct GraphBuilder {
    pub(super) core: Core,
    pub(super) proto: GraphProto,
    /// Declared types by name.
    types: FxHashMap<Arc<str>, ValueType>,
    outputs: Vec<Arc<str>>,
    /// Inputs that have an initializer.
    pub(super) overridable: FxHashSet<Arc<str>>,
    is_main: bool,
}

impl GraphBuilder {
    pub(super) fn new(name: &str, scope: Scope, common: Common, is_main: bool) -> GraphBuilder {
        let mut proto = GraphProto::new();
        proto.set_name(name);
        let core = Core { nodes: Vec::new(), scope, common, within: Within::Graph, prefix: String::new() };
        GraphBuilder {
            core,
            proto,
            types: FxHashMap::default(),
            outputs: Vec::new(),
            overridable: FxHashSet::default(),
            is_main,
        }
    }

    /// Adds an input. Struct types with an identity are declared in the model.
    ///
    /// # Errors
    /// When the name is empty or taken (by an initializer too: add the input first), or the type has an identity
    /// that another declaration has.
    pub fn input(&mut self, name: &str, ty: &ValueType) -> Result<Var, Error> {
        let call = || format!("input `{name}`");
        let refused = |problem| Error::call(call(), problem);
        self.core.common.lock().declare(ty).map_err(refused)?;
        let shared = self.core.scope.define(name, "input").map_err(refused)?;
        self.proto.input_mut().push(value_info(name, Some(ty)));
        self.types.insert(shared.clone(), ty.clone());
        Ok(Var::new(shared))
    }

    /// Adds an input of a body whose type follows from the operator around.
    ///
    /// # Errors
    /// When the name is empty or taken, or the graph is the main one, whose inputs need types.
    pub fn untyped_input(&mut self, name: &str) -> Result<Var, Error> {
        let refused = |problem| Error::call(format!("input `{name}`"), problem);
        if self.is_main {
            return Err(refused(Problem::NoType { what: "input", name: name.into() }));
        }
        let shared = self.core.scope.define(name, "input").map_err(refused)?;
        self.proto.input_mut().push(value_info(name, None));
        Ok(Var::new(shared))
    }

    /// Makes a value of the graph an output.
    ///
    /// # Errors
    /// When the value does not exist here, is an output already, or the type contradicts one that is declared for
    /// it or has an identity that another declaration has.
    pub fn output(&mut self, value: impl AsRef<str>, ty: &ValueType) -> Result<(), Error> {
        self.add_output(value.as_ref(), Some(ty))
    }

    /// Makes a value an output of a body, whose type follows from the operator around.
    ///
    /// # Errors
    /// As [`output`](GraphBuilder::output), and when the graph is the main one.
    pub fn untyped_output(&mut self, value: impl AsRef<str>) -> Result<(), Error> {
        self.add_output(value.as_ref(), None)
    }

    fn add_output(&mut self, name: &str, ty: Option<&ValueType>) -> Result<(), Error> {
        let refused = |problem| Error::call(format!("output `{name}`"), problem);
        self.core.scope.check(name).map_err(refused)?;
        if let Some(first) = self.outputs.iter().position(|output| &**output == name) {
            let first = format!("output[{first}]");
            return Err(refused(Problem::Duplicate { what: "output", name: name.into(), first }));
        }
        match ty {
            Some(ty) => {
                self.core.common.lock().declare(ty).map_err(refused)?;
                self.note_type(name, ty).map_err(refused)?;
            }
            None if self.is_main => {
                return Err(refused(Problem::NoType { what: "output", name: name.into() }));
            }
            None => {}
        }
        self.outputs.push(name.into());
        self.proto.output_mut().push(value_info(name, ty));
        Ok(())
    }

    /// Declares the type of a value in between, for readers of the file and for shape inference.
    ///
    /// # Errors
    /// When the value is not of this graph, or the type contradicts what is known of it.
    pub fn value_type(&mut self, value: impl AsRef<str>, ty: &ValueType) -> Result<(), Error> {
        let name = value.as_ref();
        let refused = |problem| Error::call(format!("type of `{name}`"), problem);
        self.core.scope.check(name).map_err(refused)?;
        if self.core.scope.own(name).is_none() {
            return Err(refused(Problem::Foreign { name: name.into() }));
        }
        self.core.common.lock().declare(ty).map_err(refused)?;
        self.note_type(name, ty).map_err(refused)?;
        self.proto.value_info_mut().push(value_info(name, Some(ty)));
        Ok(())
    }

    /// Notes the type of a value; where it has one, the two must agree.
    pub(super) fn note_type(&mut self, name: &str, ty: &ValueType) -> Result<(), Problem> {
        match self.types.get(name) {
            Some(first) => match agree::difference(first, ty) {
                None => Ok(()),
                Some(_) => {
                    let (declared, actual) = (first.to_string(), ty.to_string());
                    Err(Problem::TypeConflict { name: name.into(), declared, actual })
                }
            },
            None => {
                self.types.insert(name.into(), ty.clone());
                Ok(())
            }
        }
    }

    /// Begins a node. Its last call, which names the outputs, adds it.
    pub fn node(&mut self, op: &str) -> NodeBuilder<'_> {
        NodeBuilder::new(&mut self.core, op)
    }

    /// Begins a body: it sees what this graph has defined so far. Its [`finish`](GraphBuilder::finish) gives the
    /// value of an attribute.
    pub fn body(&self, name: &str) -> GraphBuilder {
        let mut body = GraphBuilder::new(name, self.core.scope.inner(), self.core.common.clone(), false);
        body.core.prefix.clone_from(&self.core.prefix);
        body
    }

    /// Begins a body that sees nothing of this graph but its types and operator sets.
    pub fn closed_body(&self, name: &str) -> GraphBuilder {
        GraphBuilder::new(name, Scope::default(), self.core.common.clone(), false)
    }

    /// Declares that `output` supplies `input` of the next call.
    ///
    /// # Errors
    /// When the graph is a body; a name is not that of an input or output, or is bound already; the types can never
    /// agree; or a value can hold strings.
    pub fn bind(&mut self, input: impl AsRef<str>, output: impl AsRef<str>) -> Result<(), Error> {
        let (input, output) = (input.as_ref(), output.as_ref());
        let refused = |problem| Error::call("bind", problem);
        if !self.is_main {
            return Err(refused(Problem::BindingInBody { input: input.into(), output: output.into() }));
        }
        let names = |values: &[ValueInfoProto]| values.iter().map(|value| value.name().into()).collect();
        if !self.proto.input().iter().any(|value| value.name() == input) {
            let inputs = names(self.proto.input());
            let (input, output) = (input.into(), output.into());
            return Err(refused(Problem::BindingInput { input, output, inputs }));
        }
        if !self.outputs.iter().any(|name| &**name == output) {
            let outputs = names(self.proto.output());
            let (input, output) = (input.into(), output.into());
            return Err(refused(Problem::BindingOutput { input, output, outputs }));
        }
        for first in self.proto.persistent_bindings() {
            let twice = [("input", first.input_name() == input), ("output", first.output_name() == output)];
            if let Some((what, _)) = twice.into_iter().find(|(_, is_bound)| *is_bound) {
                let first = bindings::show(first.input_name(), first.output_name());
                let (input, output) = (input.into(), output.into());
                return Err(refused(Problem::BindingTwice { input, output, what, first }));
            }
        }
        let problems = bindings::types(input, output, self.types.get(input), self.types.get(output));
        if let Some(problem) = problems.into_iter().next() {
            return Err(refused(problem));
        }
        let mut binding = PersistentBindingProto::new();
        binding.set_input_name(input);
        binding.set_output_name(output);
        self.proto.persistent_bindings_mut().push(binding);
        Ok(())
    }

    /// A name that no visible value has: `hint` itself, or with a number; behind the prefix, if one is set.
    pub fn unique(&self, hint: &str) -> String {
        self.core.unique(hint)
    }

    /// Sets what stands in front of names that are made up, such as `blk.0.`.
    pub fn prefix(&mut self, prefix: &str) {
        self.core.prefix = prefix.into();
    }

    /// Whether a value of that name can be read here.
    pub fn sees(&self, name: &str) -> bool {
        self.core.scope.sees(name)
    }

    /// Text for people.
    pub fn doc(&mut self, text: &str) {
        self.proto.set_doc_string(text);
    }

    /// An annotation.
    pub fn metadata(&mut self, key: &str, value: &str) {
        self.proto.metadata_props_mut().push(entry(key, value));
    }

    /// The body's message, for an attribute.
    pub fn finish(mut self) -> GraphProto {
        *self.proto.node_mut() = self.core.nodes;
        self.proto
    }
}

fn value_info(name: &str, ty: Option<&ValueType>) -> ValueInfoProto {
    let mut info = ValueInfoProto::new();
    info.set_name(name);
    if let Some(ty) = ty {
        info.set_type(ty.to_proto());
    }
    info
}
