//! Functions in the making.

use heirloom_proto::{AttributeProto, FunctionProto, OperatorSetIdProto};

use super::attr::Attr;
use super::body::{GraphBuilder, Var};
use super::node::{Core, NodeBuilder, Within, entry};
use super::scope::{Common, Scope, import};
use crate::{Error, Problem};

/// A function in the making: one that a model's nodes call, or the codec of a struct type.
#[derive(Debug)]
pub struct FunctionBuilder {
    core: Core,
    proto: FunctionProto,
}

impl FunctionBuilder {
    /// Begins a function.
    pub fn new(domain: &str, name: &str) -> FunctionBuilder {
        let mut proto = FunctionProto::new();
        proto.set_name(name);
        proto.set_domain(domain);
        let within = Within::Function { opsets: Vec::new(), attributes: Vec::new(), name: name.into() };
        let core = Core {
            nodes: Vec::new(),
            scope: Scope::default(),
            common: Common::default(),
            within,
            prefix: String::new(),
        };
        FunctionBuilder { core, proto }
    }

    fn refused(&self) -> impl Fn(Problem) -> Error + use<> {
        let call = format!("function `{}`", self.proto.name());
        move |problem| Error::call(call.clone(), problem)
    }

    /// Names an operator set that the body uses; the empty domain is ai.onnx.
    ///
    /// # Errors
    /// When the version is none, or another one is imported.
    pub fn opset(&mut self, domain: &str, version: i64) -> Result<&mut FunctionBuilder, Error> {
        let refused = self.refused();
        if let Within::Function { opsets, .. } = &mut self.core.within {
            import(opsets, domain, version).map_err(refused)?;
        }
        Ok(self)
    }

    /// Tells functions of the same name and domain apart.
    pub fn overload(&mut self, overload: &str) -> &mut FunctionBuilder {
        self.proto.set_overload(overload);
        self
    }

    /// Adds an input.
    ///
    /// # Errors
    /// When the name is empty or taken.
    pub fn input(&mut self, name: &str) -> Result<Var, Error> {
        let shared = self.core.scope.define(name, "input").map_err(self.refused())?;
        self.proto.input_mut().push(name);
        Ok(Var::new(shared))
    }

    /// Makes a value of the body an output.
    ///
    /// # Errors
    /// When the value does not exist.
    pub fn output(&mut self, value: impl AsRef<str>) -> Result<(), Error> {
        self.core.scope.check(value.as_ref()).map_err(self.refused())?;
        self.proto.output_mut().push(value.as_ref());
        Ok(())
    }

    /// Adds an attribute without a default.
    ///
    /// # Errors
    /// When the name is empty or taken.
    pub fn attribute(&mut self, name: &str) -> Result<(), Error> {
        self.add_attribute(name)?;
        self.proto.attribute_mut().push(name);
        Ok(())
    }

    /// Adds an attribute with a default.
    ///
    /// # Errors
    /// When the name is empty or taken, or the value is a strided tensor.
    pub fn attribute_with_default(&mut self, name: &str, default: impl Into<Attr>) -> Result<(), Error> {
        let proto: AttributeProto = default.into().into_proto(name).map_err(self.refused())?;
        self.add_attribute(name)?;
        self.proto.attribute_proto_mut().push(proto);
        Ok(())
    }

    fn add_attribute(&mut self, name: &str) -> Result<(), Error> {
        let refused = self.refused();
        let Within::Function { attributes, .. } = &mut self.core.within else { return Ok(()) };
        if name.is_empty() {
            return Err(refused(Problem::NoName { what: "attribute" }));
        }
        if attributes.iter().any(|other| other == name) {
            let first = "an earlier one".into();
            return Err(refused(Problem::Duplicate { what: "attribute", name: name.into(), first }));
        }
        attributes.push(name.into());
        Ok(())
    }

    /// A name that no value of the function has: `hint` itself, or `hint` with a number.
    pub fn unique(&self, hint: &str) -> String {
        self.core.unique(hint)
    }

    /// Begins a node of the body.
    pub fn node(&mut self, op: &str) -> NodeBuilder<'_> {
        NodeBuilder::new(&mut self.core, op)
    }

    /// Begins the body of a control-flow operator within the function.
    pub fn body(&self, name: &str) -> GraphBuilder {
        let mut body = GraphBuilder::new(name, self.core.scope.inner(), self.core.common.clone(), false);
        body.core.within = self.core.within.clone();
        body
    }

    /// Adds a constant: a `Constant` node named after `hint`.
    ///
    /// # Errors
    /// When ai.onnx is not imported or the tensor is a strided view.
    pub fn constant(&mut self, hint: &str, value: impl Into<Attr>) -> Result<Var, Error> {
        self.node("Constant").attr("value", value).fresh(hint)
    }

    /// Text for people.
    pub fn doc(&mut self, text: &str) {
        self.proto.set_doc_string(text);
    }

    /// An annotation.
    pub fn metadata(&mut self, key: &str, value: &str) {
        self.proto.metadata_props_mut().push(entry(key, value));
    }

    /// The function's message.
    ///
    /// # Errors
    /// When it has no name.
    pub fn finish(mut self) -> Result<FunctionProto, Error> {
        if self.proto.name().is_empty() {
            return Err(self.refused()(Problem::NoName { what: "function" }));
        }
        if let Within::Function { opsets, .. } = &self.core.within {
            for (domain, version) in opsets {
                self.proto.opset_import_mut().push(opset_import(domain, *version));
            }
        }
        *self.proto.node_mut() = self.core.nodes;
        Ok(self.proto)
    }
}

pub(super) fn opset_import(domain: &str, version: i64) -> OperatorSetIdProto {
    let mut import = OperatorSetIdProto::new();
    import.set_domain(domain);
    import.set_version(version);
    import
}
