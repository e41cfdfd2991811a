//! Functions: bodies that nodes call like operators.

use std::sync::Arc;

use heirloom_proto::{ExternalResolver, FunctionProto, OperatorSetIdProto};
use heirloom_types::Catalogue;

use crate::import::{self, Context};
use crate::path::{FaultList, Path};
use crate::{Attributes, Error, Faults, Graph};

/// A function of a model, or a codec of a struct type. Immutable.
#[derive(Clone, Debug)]
pub struct Function {
    name: String,
    domain: String,
    overload: String,
    body: Arc<Graph>,
    attributes: Vec<String>,
    defaults: Attributes,
    opset_imports: Opsets,
}

/// Versions of operator sets by domain, in the order of the file. `ai.onnx` is the domain that is written empty.
pub type Opsets = Vec<(String, i64)>;

/// The version of a domain's operator set.
pub(crate) fn version_of(opsets: &Opsets, domain: &str) -> Option<i64> {
    let domain = canonical_domain(domain);
    opsets.iter().find(|(name, _)| canonical_domain(name) == domain).map(|(_, version)| *version)
}

/// ONNX's own domain has two names.
pub(crate) fn canonical_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

pub(crate) fn opsets(imports: &[OperatorSetIdProto]) -> Opsets {
    imports.iter().map(|import| (import.domain().into(), import.version())).collect()
}

impl Function {
    pub(crate) fn new(proto: &FunctionProto, body: Graph, defaults: Attributes) -> Function {
        Function {
            name: proto.name().into(),
            domain: proto.domain().into(),
            overload: proto.overload().into(),
            body: Arc::new(body),
            attributes: proto.attribute().iter().map(String::from).collect(),
            defaults,
            opset_imports: opsets(proto.opset_import()),
        }
    }

    /// A function that stands alone: the codec of a struct type. Its own bodies may use the types of `catalogue`.
    ///
    /// # Errors
    /// With all faults that forbid to execute it.
    pub fn from_proto(proto: &FunctionProto, catalogue: &Catalogue) -> Result<Function, Error> {
        let resolver = ExternalResolver::without_base_dir();
        let context = Context { catalogue, resolver: &resolver, defer_missing: false, is_strict: false };
        let mut faults = FaultList::default();
        let function = import::function(proto, &context, &mut faults, &Path::ROOT);
        if faults.is_empty() {
            return Ok(function);
        }
        Err(Error::Invalid { file: None, faults: Faults(faults.into_vec()) })
    }

    /// The name that nodes give as `op_type`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The domain.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Tells functions of the same name and domain apart; usually empty.
    pub fn overload(&self) -> &str {
        &self.overload
    }

    /// The body. Its inputs and outputs are the function's; it captures nothing and has no constants or bindings.
    pub fn body(&self) -> &Arc<Graph> {
        &self.body
    }

    /// Attributes that have no default. A call may leave one out; then references to it in the body mean that the
    /// attribute is absent there.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Attributes that have a default, with it.
    pub fn defaults(&self) -> &Attributes {
        &self.defaults
    }

    /// The operator sets that the body uses: its own, not the model's.
    pub fn opset_imports(&self) -> &[(String, i64)] {
        &self.opset_imports
    }

    /// The version of a domain's operator set within the body; `ai.onnx` and the empty domain are the same.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        version_of(&self.opset_imports, domain)
    }
}
