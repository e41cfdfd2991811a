//! Editing models: names, outputs, bindings and annotations, with all that refers to them.

mod constants;
mod keep_first;
mod rename;

use heirloom_proto::{GraphProto, ModelProto, PersistentBindingProto, StringStringEntryProto};

use heirloom_types::Catalogue;

use crate::bindings::show;
use crate::{Error, Model, Problem};

/// Changes to a model, applied one after another and checked together by [`finish`](Edit::finish). The model that
/// is edited stays as it is; what no change is about is written as it was, byte for byte.
#[derive(Debug)]
pub struct Edit<'m> {
    model: &'m Model,
    proto: ModelProto,
    /// Inputs and outputs that were removed, by name, and whether each was an input.
    removed: Vec<(String, &'static str)>,
    /// The struct types with those that were added; `None` while none was.
    types: Option<Catalogue>,
}

impl Model {
    /// Begins changes to the model.
    pub fn edit(&self) -> Edit<'_> {
        Edit { model: self, proto: self.proto().clone(), removed: Vec::new(), types: None }
    }
}

impl Edit<'_> {
    fn graph(&self) -> Option<&GraphProto> {
        self.proto.graph()
    }

    /// Gives a value of the main graph (input, output, initializer or value in between) another name, wherever it
    /// is named: nodes, bodies, types, quantization annotations, device placements, bindings, training.
    ///
    /// # Errors
    /// When there is no such value, or the new name is empty or taken in the graph or a body.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<&mut Self, Error> {
        rename::value(&mut self.proto, from, to)
            .map_err(|problem| Error::call(format!("rename `{from}` to `{to}`"), problem))?;
        for (name, _) in &mut self.removed {
            if name == from {
                *name = to.into();
            }
        }
        Ok(self)
    }

    /// Makes an output no output any more; the value stays. If it is bound, the same edit must remove the binding.
    ///
    /// # Errors
    /// When there is no such output.
    pub fn remove_output(&mut self, name: &str) -> Result<&mut Self, Error> {
        let outputs = self.graph().map_or(&[][..], GraphProto::output);
        let Some(index) = outputs.iter().position(|output| output.name() == name) else {
            return Err(self.no_such("remove output", name, outputs.iter().map(|output| output.name())));
        };
        self.proto.graph_mut().output_mut().remove(index);
        self.removed.push((name.into(), "output"));
        Ok(self)
    }

    /// Removes an input that nothing reads. If it is bound, the same edit must remove the binding.
    ///
    /// # Errors
    /// When there is no such input. That something reads it is found by [`finish`](Edit::finish).
    pub fn remove_input(&mut self, name: &str) -> Result<&mut Self, Error> {
        let inputs = self.graph().map_or(&[][..], GraphProto::input);
        let Some(index) = inputs.iter().position(|input| input.name() == name) else {
            return Err(self.no_such("remove input", name, inputs.iter().map(|input| input.name())));
        };
        self.proto.graph_mut().input_mut().remove(index);
        self.removed.push((name.into(), "input"));
        Ok(self)
    }

    fn no_such<'a>(&self, call: &str, name: &str, among: impl Iterator<Item = &'a str>) -> Error {
        let similar = crate::names::closest(name, among);
        Error::call(format!("{call} `{name}`"), Problem::Undefined { name: name.into(), similar })
    }

    /// Declares that `output` supplies `input` of the next call. Names and types are checked by
    /// [`finish`](Edit::finish).
    pub fn bind(&mut self, input: &str, output: &str) -> &mut Self {
        let mut binding = PersistentBindingProto::new();
        binding.set_input_name(input);
        binding.set_output_name(output);
        self.proto.graph_mut().persistent_bindings_mut().push(binding);
        self
    }

    /// Removes the binding of an input.
    ///
    /// # Errors
    /// When the input is not bound.
    pub fn unbind(&mut self, input: &str) -> Result<&mut Self, Error> {
        let bindings = self.graph().map_or(&[][..], GraphProto::persistent_bindings);
        let Some(index) = bindings.iter().position(|binding| binding.input_name() == input) else {
            return Err(self.no_such("unbind", input, bindings.iter().map(|binding| binding.input_name())));
        };
        self.proto.graph_mut().persistent_bindings_mut().remove(index);
        Ok(self)
    }

    /// Sets an annotation of the model, or removes it.
    pub fn metadata(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        let index = self.proto.metadata_props().iter().position(|entry| entry.key() == key);
        match (index, value) {
            (Some(index), Some(value)) => self.proto.metadata_props_mut()[index].set_value(value),
            (Some(index), None) => {
                self.proto.metadata_props_mut().remove(index);
            }
            (None, Some(value)) => {
                let mut entry = StringStringEntryProto::new();
                entry.set_key(key);
                entry.set_value(value);
                self.proto.metadata_props_mut().push(entry);
            }
            (None, None) => {}
        }
        self
    }

    /// The edited model, checked as a whole.
    ///
    /// # Errors
    /// When an input or output was removed that a binding names, or the model breaks another rule.
    pub fn finish(self) -> Result<Model, Error> {
        let bindings = self.graph().map_or(&[][..], GraphProto::persistent_bindings);
        for (name, what) in &self.removed {
            let is_bound = |binding: &&PersistentBindingProto| match *what {
                "input" => binding.input_name() == name,
                _ => binding.output_name() == name,
            };
            if let Some(binding) = bindings.iter().find(is_bound) {
                let binding = show(binding.input_name(), binding.output_name());
                let problem = Problem::Bound { name: name.clone(), binding };
                return Err(Error::call(format!("remove {what} `{name}`"), problem));
            }
        }
        self.model.with_proto(self.proto)
    }
}
