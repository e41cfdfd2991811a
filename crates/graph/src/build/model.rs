//! Models in the making.

use std::path::Path as FilePath;
use std::sync::Arc;

use heirloom_proto::{ExternalResolver, FunctionProto, ModelProto};
use heirloom_types::{Catalogue, StructType};

use super::body::GraphBuilder;
use super::function::opset_import;
use super::node::entry;
use super::scope::{Common, Scope};
use crate::function::canonical_domain;
use crate::{Error, Faults, Model, OpenOptions, Problem, verify};

/// A model in the making.
///
/// ```
/// use heirloom_graph::ModelBuilder;
/// use heirloom_mem::{DType, Tensor};
/// use heirloom_types::{Dim, ValueType};
///
/// let mut model = ModelBuilder::new("sum");
/// model.opset("", 24)?;
/// let g = model.graph();
/// let ty = ValueType::symbolic(DType::Float, [Dim::from("n")]);
/// let x = g.input("x", &ty)?;
/// let s = g.input("s", &ty)?;
/// let next = g.node("Add").input(&x).input(&s).output("s_next")?;
/// g.output(&next, &ty)?;
/// g.bind(&s, &next)?;
/// let proto = model.finish()?;
/// assert_eq!(proto.graph().unwrap().persistent_bindings().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ModelBuilder {
    proto: ModelProto,
    common: Common,
    graph: GraphBuilder,
}

/// Versions of the representation by the versions of ai.onnx that came with them (ONNX, docs/Versioning.md).
const IR_VERSIONS: [(i64, i64); 12] = [
    (8, 3),
    (9, 4),
    (10, 5),
    (11, 6),
    (14, 7),
    (18, 8),
    (20, 9),
    (22, 10),
    (23, 11),
    (24, 12),
    (27, 13),
    (28, 14),
];
/// The newest version of the representation.
const NEWEST_IR: i64 = 14;

impl ModelBuilder {
    /// Begins a model; `name` is its graph's.
    pub fn new(name: &str) -> ModelBuilder {
        let common = Common::default();
        let graph = GraphBuilder::new(name, Scope::default(), common.clone(), true);
        let mut proto = ModelProto::new();
        proto.set_producer_name("heirloom");
        proto.set_producer_version(env!("CARGO_PKG_VERSION"));
        ModelBuilder { proto, common, graph }
    }

    /// The main graph.
    pub fn graph(&mut self) -> &mut GraphBuilder {
        &mut self.graph
    }

    /// Names an operator set that the model uses; the empty domain is ai.onnx. Before the first node that needs it.
    ///
    /// # Errors
    /// When the version is none, or another one is imported.
    pub fn opset(&mut self, domain: &str, version: i64) -> Result<&mut ModelBuilder, Error> {
        let outcome = self.common.lock().import(domain, version);
        outcome.map_err(|problem| Error::call("opset", problem))?;
        Ok(self)
    }

    /// Sets the version of the representation; without this call it is the one that came with the version of
    /// ai.onnx that the model uses.
    pub fn ir_version(&mut self, version: i64) -> &mut ModelBuilder {
        self.proto.set_ir_version(version);
        self
    }

    /// Declares a struct type, and those that it refers to. Types are declared by their first use, too.
    ///
    /// # Errors
    /// When the type has no identity, or one that another declaration has.
    pub fn struct_type(&mut self, ty: &Arc<StructType>) -> Result<(), Error> {
        let outcome = self.common.lock().catalogue.define(ty);
        outcome.map_err(|error| Error::call(format!("type {ty}"), Problem::Type(error)))
    }

    /// The types declared so far.
    pub fn catalogue(&self) -> Catalogue {
        self.common.lock().catalogue.clone()
    }

    /// Adds a function; nodes call it by its domain and name. Its domain is imported, in version 1, where it is not.
    ///
    /// # Errors
    /// When a function of that domain, name and overload exists.
    pub fn function(&mut self, function: FunctionProto) -> Result<(), Error> {
        let (domain, name) = (function.domain(), function.name());
        let refused = |problem| Error::call(format!("function `{name}`"), problem);
        let key = (canonical_domain(domain).into(), name.into(), function.overload().into());
        let size = (function.input().len(), function.output().len());
        let mut shared = self.common.lock();
        if shared.functions.contains_key(&key) {
            let first = "an earlier one".into();
            return Err(refused(Problem::Duplicate { what: "function", name: name.into(), first }));
        }
        if crate::function::version_of(&shared.opsets, domain).is_none() {
            shared.import(domain, 1).map_err(refused)?;
        }
        shared.functions.insert(key, size);
        drop(shared);
        self.proto.functions_mut().push(function);
        Ok(())
    }

    /// Sets the tool that made the model; `heirloom` without this call.
    pub fn producer(&mut self, name: &str, version: &str) -> &mut ModelBuilder {
        self.proto.set_producer_name(name);
        self.proto.set_producer_version(version);
        self
    }

    /// Sets an annotation of the model; an earlier one of the key is replaced.
    pub fn metadata(&mut self, key: &str, value: &str) -> &mut ModelBuilder {
        let entries = self.proto.metadata_props_mut();
        match entries.iter_mut().find(|entry| entry.key() == key) {
            Some(entry) => entry.set_value(value),
            None => entries.push(entry(key, value)),
        }
        self
    }

    /// Text for people.
    pub fn doc(&mut self, text: &str) -> &mut ModelBuilder {
        self.proto.set_doc_string(text);
        self
    }

    /// The model's message. Payloads in files are not touched.
    ///
    /// # Errors
    /// With all faults that only the whole shows.
    pub fn finish(self) -> Result<ModelProto, Error> {
        let ModelBuilder { mut proto, common, graph } = self;
        let shared = common.lock();
        if !proto.has_ir_version() {
            let version = crate::function::version_of(&shared.opsets, "").unwrap_or(i64::MAX);
            let found = IR_VERSIONS.iter().find(|(opset, _)| version <= *opset);
            proto.set_ir_version(found.map_or(NEWEST_IR, |(_, ir)| *ir));
        }
        for (domain, version) in &shared.opsets {
            proto.opset_import_mut().push(opset_import(domain, *version));
        }
        *proto.struct_types_mut() = shared.catalogue.to_protos();
        drop(shared);
        proto.set_graph(graph.finish());
        let faults = verify(&proto, &ExternalResolver::without_base_dir());
        if faults.is_empty() { Ok(proto) } else { Err(Error::Invalid { file: None, faults: Faults(faults) }) }
    }

    /// The model, ready for a session; files of payloads are looked up in `base_dir`.
    ///
    /// # Errors
    /// As [`finish`](ModelBuilder::finish), and when a file of payloads is not there or too short.
    pub fn build(self, base_dir: Option<&FilePath>) -> Result<Model, Error> {
        Model::from_proto(self.finish()?, base_dir, &OpenOptions::default())
    }
}
