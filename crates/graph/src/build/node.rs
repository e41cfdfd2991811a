//! Nodes in the making.

use heirloom_proto::attribute_proto::AttributeType;
use heirloom_proto::{NodeProto, StringStringEntryProto};

use super::attr::{self, Attr};
use super::body::Var;
use super::scope::{Common, Scope};
use crate::function::{Opsets, canonical_domain, version_of};
use crate::{Error, Problem};

/// Nodes, names and what they may refer to: what graphs and functions have in common while they are built.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) nodes: Vec<NodeProto>,
    pub(super) scope: Scope,
    pub(super) common: Common,
    pub(super) within: Within,
    /// Stands in front of names that are made up.
    pub(super) prefix: String,
}

/// What the nodes stand in.
#[derive(Clone, Debug)]
pub(super) enum Within {
    /// A graph: the model's operator sets count.
    Graph,
    /// A function, with operator sets and attributes of its own.
    Function { opsets: Opsets, attributes: Vec<String>, name: String },
}

impl Core {
    pub(super) fn unique(&self, hint: &str) -> String {
        if self.prefix.is_empty() {
            return self.scope.unique(hint);
        }
        self.scope.unique(&format!("{}{hint}", self.prefix))
    }
}

/// A node in the making. Inputs and attributes are gathered; the call that names the outputs adds the node to its
/// graph and says what is wrong with it.
#[derive(Debug)]
#[must_use = "a node is added by the call that names its outputs"]
pub struct NodeBuilder<'a> {
    core: &'a mut Core,
    proto: NodeProto,
    problem: Option<Problem>,
}

impl<'a> NodeBuilder<'a> {
    pub(super) fn new(core: &'a mut Core, op: &str) -> NodeBuilder<'a> {
        let mut proto = NodeProto::new();
        proto.set_op_type(op);
        let problem = if op.is_empty() { Some(Problem::NoOperator) } else { None };
        NodeBuilder { core, proto, problem }
    }

    fn note(&mut self, outcome: Result<(), Problem>) {
        if let Err(problem) = outcome {
            self.problem.get_or_insert(problem);
        }
    }

    /// The operator's domain; ai.onnx where it is not called.
    pub fn domain(mut self, domain: &str) -> Self {
        self.proto.set_domain(canonical_domain(domain));
        self
    }

    /// Which of several functions of the same name and domain.
    pub fn overload(mut self, overload: &str) -> Self {
        self.proto.set_overload(overload);
        self
    }

    /// The node's name; that of its first output where it is not called.
    pub fn name(mut self, name: &str) -> Self {
        self.proto.set_name(name);
        self
    }

    /// Text for people.
    pub fn doc(mut self, text: &str) -> Self {
        self.proto.set_doc_string(text);
        self
    }

    /// An annotation.
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.proto.metadata_props_mut().push(entry(key, value));
        self
    }

    /// The next input.
    pub fn input(mut self, value: impl AsRef<str>) -> Self {
        let outcome = self.core.scope.check(value.as_ref());
        self.note(outcome);
        self.proto.input_mut().push(value.as_ref());
        self
    }

    /// The next inputs.
    pub fn inputs<V: AsRef<str>>(self, values: impl IntoIterator<Item = V>) -> Self {
        values.into_iter().fold(self, |node, value| node.input(value))
    }

    /// The next input, or its place left empty.
    pub fn optional(self, value: Option<&Var>) -> Self {
        match value {
            Some(value) => self.input(value),
            None => self.skip(),
        }
    }

    /// Leaves the next, optional input out.
    pub fn skip(mut self) -> Self {
        self.proto.input_mut().push("");
        self
    }

    /// An attribute.
    pub fn attr(mut self, name: &str, value: impl Into<Attr>) -> Self {
        match value.into().into_proto(name) {
            Ok(attribute) => self.push_attribute(attribute),
            Err(problem) => self.note(Err(problem)),
        }
        self
    }

    /// An attribute that has the value of the attribute `to` of the function around.
    pub fn attr_ref(mut self, name: &str, to: &str, kind: AttributeType) -> Self {
        let (name, to) = (String::from(name), String::from(to));
        let within = match &self.core.within {
            Within::Function { attributes, .. } if attributes.contains(&to) => {
                self.push_attribute(attr::reference(&name, &to, kind));
                return self;
            }
            Within::Function { name, .. } => Some(name.clone()),
            Within::Graph => None,
        };
        self.note(Err(Problem::AttributeReference { name, to, within }));
        self
    }

    fn push_attribute(&mut self, attribute: heirloom_proto::AttributeProto) {
        let name = attribute.name();
        let first = self.proto.attribute().iter().position(|other| other.name() == name);
        let outcome = match first {
            _ if name.is_empty() => Err(Problem::NoName { what: "attribute" }),
            Some(first) => {
                let first = format!("attribute[{first}]");
                Err(Problem::Duplicate { what: "attribute", name: name.into(), first })
            }
            None => Ok(()),
        };
        self.note(outcome);
        self.proto.attribute_mut().push(attribute);
    }

    /// Adds the node with one output of exactly this name.
    ///
    /// # Errors
    /// When an input is not defined or not visible, an attribute is wrong or twice, the domain is not imported, or
    /// the name is taken.
    pub fn output(self, name: &str) -> Result<Var, Error> {
        self.outputs([name]).map(|[var]| var)
    }

    /// Adds the node with outputs of exactly these names; an empty one leaves an optional output out.
    ///
    /// # Errors
    /// As [`output`](NodeBuilder::output).
    pub fn outputs<const N: usize>(self, names: [&str; N]) -> Result<[Var; N], Error> {
        let vars = self.output_list(names)?;
        Ok(vars.try_into().expect("as many as names"))
    }

    /// Adds the node with one output, named after `hint`: a number is added where that is taken.
    ///
    /// # Errors
    /// As [`output`](NodeBuilder::output).
    pub fn fresh(self, hint: &str) -> Result<Var, Error> {
        let name = self.core.unique(hint);
        self.output(&name)
    }

    /// Adds the node with one output, named after the operator.
    ///
    /// # Errors
    /// As [`output`](NodeBuilder::output).
    pub fn auto(self) -> Result<Var, Error> {
        let hint = String::from(self.proto.op_type());
        self.fresh(&hint)
    }

    /// Adds the node with as many outputs as names are given.
    ///
    /// # Errors
    /// As [`output`](NodeBuilder::output).
    pub fn output_list<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<Var>, Error> {
        let names: Vec<&str> = names.into_iter().collect();
        let outcome = self.check(&names);
        self.note(outcome);
        let first = names.iter().find(|name| !name.is_empty()).copied().unwrap_or_default();
        let call = describe(&self.proto, first);
        if let Some(problem) = self.problem {
            return Err(Error::call(call, problem));
        }
        let mut vars = Vec::with_capacity(names.len());
        for name in names {
            let name = if name.is_empty() {
                name.into()
            } else {
                let name = self.core.scope.define(name, "output of a node");
                name.map_err(|problem| Error::call(call.clone(), problem))?
            };
            self.proto.output_mut().push(&*name);
            vars.push(Var::new(name));
        }
        if !self.proto.has_name() && !first.is_empty() {
            self.proto.set_name(first);
        }
        self.core.nodes.push(self.proto);
        Ok(vars)
    }

    /// All that can be wrong before names are taken.
    fn check(&self, outputs: &[&str]) -> Result<(), Problem> {
        for (index, name) in outputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if self.core.scope.sees(name) || outputs[..index].contains(name) {
                self.core.scope.define(name, "output of a node")?;
                return Err(Problem::Taken { name: (*name).into(), by: "another output of the node".into() });
            }
        }
        let domain = canonical_domain(self.proto.domain());
        let shared = self.core.common.lock();
        let opsets = match &self.core.within {
            Within::Graph => &shared.opsets,
            Within::Function { opsets, .. } => opsets,
        };
        if version_of(opsets, domain).is_none() {
            let shown = |domain: &str| if domain.is_empty() { "ai.onnx" } else { domain }.to_owned();
            let domains = opsets.iter().map(|(domain, _)| shown(domain)).collect();
            let op = self.proto.op_type().into();
            return Err(Problem::NoOpset { op, domain: shown(domain), domains });
        }
        let key = (domain.into(), self.proto.op_type().into(), self.proto.overload().into());
        if let Some(&(inputs, most)) = shared.functions.get(&key) {
            let sizes = [("inputs", inputs, self.proto.input().len()), ("outputs", most, outputs.len())];
            for (what, expected, actual) in sizes {
                if actual > expected {
                    let function = self.proto.op_type().into();
                    return Err(Problem::CallSize { function, what, expected, actual });
                }
            }
        }
        Ok(())
    }
}

fn describe(proto: &NodeProto, first_output: &str) -> String {
    let op = proto.op_type();
    match (proto.name(), first_output) {
        ("", "") => format!("node (`{op}`)"),
        ("", output) => format!("node of `{output}` (`{op}`)"),
        (name, _) => format!("node `{name}` (`{op}`)"),
    }
}

pub(super) fn entry(key: &str, value: &str) -> StringStringEntryProto {
    let mut entry = StringStringEntryProto::new();
    entry.set_key(key);
    entry.set_value(value);
    entry
}
