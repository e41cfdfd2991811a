//! Graphs while they are being imported, and how names find values through them.

use std::sync::Arc;

use heirloom_proto::NodeProto;
use heirloom_types::ValueType;

use super::describe_node;
use crate::graph::{Capture, Source, ValueEntry};
use crate::names::closest;
use crate::{Graph, Initializer, ValueId};

/// A graph that is being imported.
pub(super) struct Draft {
    pub(super) graph: Graph,
}

impl Draft {
    pub(super) fn new(name: &str) -> Draft {
        Draft { graph: Graph { name: name.into(), ..Graph::default() } }
    }

    fn add(&mut self, name: &str, source: Source) -> ValueId {
        let id = ValueId(u32::try_from(self.graph.values.len()).expect("fewer than 2^32 values"));
        let name: Arc<str> = name.into();
        self.graph.values.push(ValueEntry { name: name.clone(), ty: None, source });
        self.graph.by_name.insert(name, id);
        id
    }

    /// A new value; or the one that has the name already.
    pub(super) fn define(&mut self, name: &str, source: Source) -> Result<ValueId, ValueId> {
        match self.graph.value(name) {
            Some(value) => Err(value),
            None => Ok(self.add(name, source)),
        }
    }

    /// Stands for a name that nothing defines.
    pub(super) fn undefined(&mut self, name: &str) -> ValueId {
        self.graph.value(name).unwrap_or_else(|| self.add(name, Source::Nothing))
    }

    pub(super) fn source(&self, value: ValueId) -> Source {
        self.graph.values[index(value.0)].source
    }

    /// Adds a constant; an input of its name becomes one that a call may leave out. The other initializer of the
    /// name, if there is one, is the error.
    pub(super) fn initialize(&mut self, name: &str, initializer: Initializer) -> Result<(), ()> {
        let place = u32::try_from(self.graph.initializers.len()).expect("fewer than 2^32 initializers");
        let ty = initializer.value_type();
        let value = match self.define(name, Source::Initializer(place)) {
            Ok(value) => value,
            Err(value) if self.source(value) == Source::Input => {
                if self.graph.overridable.contains_key(&value) {
                    return Err(());
                }
                self.graph.overridable.insert(value, place);
                value
            }
            Err(_) => return Err(()),
        };
        self.graph.values[index(value.0)].ty = ty;
        self.graph.initializers.push((value, initializer));
        Ok(())
    }

    /// Notes a declared type. A constant keeps its own; where the two can never agree, both are given back.
    pub(super) fn declare(&mut self, value: ValueId, ty: ValueType) -> Option<(String, String)> {
        let constant = self.graph.initializer(value).map(Initializer::value_type);
        let overridable = self.source(value) == Source::Input;
        let entry = &mut self.graph.values[index(value.0)];
        match constant {
            Some(Some(own)) => {
                if let Some(_reason) = crate::agree::difference(&ty, &own) {
                    return Some((ty.to_string(), own.to_string()));
                }
                if overridable {
                    entry.ty = Some(ty);
                }
            }
            // An encoded value without tensor meaning takes the type that is declared for it.
            Some(None) => entry.ty = Some(ty),
            // An input's or output's declaration comes before that of `value_info`.
            None if entry.ty.is_none() => entry.ty = Some(ty),
            None => {}
        }
        None
    }

    /// What defines a value, for messages.
    pub(super) fn describe(&self, name: &str) -> String {
        self.describe_source(name, &[])
    }

    pub(super) fn describe_source(&self, name: &str, nodes: &[NodeProto]) -> String {
        let Some(value) = self.graph.value(name) else { return "nothing".into() };
        match self.source(value) {
            Source::Input => "an input".into(),
            Source::Initializer(_) => "an initializer".into(),
            Source::Capture => "a value of the graph around".into(),
            Source::Nothing => "nothing".into(),
            Source::Node(id) => match nodes.get(index(id.0)) {
                Some(node) => describe_node(node.name(), node.op_type(), id.0),
                None => format!("node[{}]", id.0),
            },
        }
    }
}

pub(super) fn index(id: u32) -> usize {
    usize::try_from(id).expect("an index fits the address space")
}

/// The value that `name` stands for in `drafts[level]`. One of a graph around it is captured by every graph between.
pub(super) fn resolve(drafts: &mut [Draft], level: usize, name: &str) -> Option<ValueId> {
    let defined = (0..=level).rev().find_map(|at| Some((at, drafts[at].graph.value(name)?)));
    let (at, mut value) = defined?;
    if drafts[at].source(value) == Source::Nothing {
        return if at == level { Some(value) } else { None };
    }
    for draft in &mut drafts[at + 1..=level] {
        let inner = draft.add(name, Source::Capture);
        draft.graph.captures.push(Capture { outer: value, inner });
        value = inner;
    }
    Some(value)
}

/// Visible names that are close to `name`.
pub(super) fn similar(drafts: &[Draft], name: &str) -> Vec<String> {
    let visible = drafts.iter().rev().flat_map(|draft| &draft.graph.values);
    closest(name, visible.filter(|entry| entry.source != Source::Nothing).map(|entry| &*entry.name))
}
