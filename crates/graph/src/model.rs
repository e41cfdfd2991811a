//! Models: opened, checked and immutable.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use heirloom_mem::Bytes;
use heirloom_proto::{ExternalResolver, FunctionProto, ModelProto};
use heirloom_types::Catalogue;
use rustc_hash::FxHashMap;

use crate::function::{Opsets, canonical_domain, opsets, version_of};
use crate::import::{self, Context};
use crate::path::{FaultList, Path};
use crate::{Error, Fault, Faults, Function, Graph, Problem};

/// How to open a model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Folders that symbolic links beside the model may lead into (model caches link their weights).
    pub external_roots: Vec<PathBuf>,
    /// Opens a model whose files of payloads are not there; their constants are then
    /// [`Initializer::Unavailable`](crate::Initializer::Unavailable). For reports; a session refuses them.
    pub allow_missing_files: bool,
}

impl OpenOptions {
    /// The same with another allowed folder.
    #[must_use]
    pub fn external_root(mut self, folder: impl Into<PathBuf>) -> OpenOptions {
        self.external_roots.push(folder.into());
        self
    }

    /// The same with another `allow_missing_files`.
    #[must_use]
    pub fn allow_missing_files(mut self, allow: bool) -> OpenOptions {
        self.allow_missing_files = allow;
        self
    }

    pub(crate) fn resolver(&self, base_dir: Option<&FilePath>) -> Result<ExternalResolver, Error> {
        let with_roots = |resolver: ExternalResolver| {
            self.external_roots.iter().try_fold(resolver, |resolver, root| resolver.with_external_root(root))
        };
        let resolver = match base_dir {
            None => Ok(ExternalResolver::without_base_dir()),
            Some(folder) => ExternalResolver::new(folder).and_then(with_roots),
        };
        resolver.map_err(|source| Error::Folder { source })
    }
}

/// The folder of a file.
pub(crate) fn folder_of(path: &FilePath) -> &FilePath {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => FilePath::new("."),
    }
}

/// A function's name within a model: domain, name, overload.
type FunctionKey = (String, String, String);

/// A model. Immutable; share it as `Arc<Model>`. Payloads stay in the mapped files, and nothing of the model was
/// executed to open it.
pub struct Model {
    proto: ModelProto,
    graph: Arc<Graph>,
    functions: Vec<Arc<Function>>,
    by_name: FxHashMap<FunctionKey, usize>,
    catalogue: Arc<Catalogue>,
    opset_imports: Opsets,
    metadata: Vec<(String, String)>,
    path: Option<PathBuf>,
    resolver: ExternalResolver,
    options: OpenOptions,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes = self.graph.nodes().len();
        write!(f, "Model(`{}`, {nodes} nodes, {:?})", self.graph.name(), self.path)
    }
}

/// What importing a model yields beside the faults.
pub(crate) struct Imported {
    pub(crate) graph: Graph,
    pub(crate) functions: Vec<Arc<Function>>,
    pub(crate) by_name: FxHashMap<FunctionKey, usize>,
    pub(crate) catalogue: Catalogue,
}

impl Imported {
    pub(crate) fn empty() -> Imported {
        Imported {
            graph: Graph::default(),
            functions: Vec::new(),
            by_name: FxHashMap::default(),
            catalogue: Catalogue::new(),
        }
    }
}

/// Turns messages into a graph, functions and a catalogue. What is at fault is listed and left out.
pub(crate) fn import_model(
    proto: &ModelProto,
    resolver: &ExternalResolver,
    defer_missing: bool,
    is_strict: bool,
    faults: &mut FaultList,
) -> Imported {
    let (catalogue, type_faults) = Catalogue::read(proto.struct_types(), Some(resolver));
    faults.extend_types(&Path::ROOT, type_faults);
    let context = Context { catalogue: &catalogue, resolver, defer_missing, is_strict };
    let mut functions = Vec::with_capacity(proto.functions().len());
    let mut by_name = FxHashMap::default();
    for (index, function) in proto.functions().iter().enumerate() {
        let path = Path::ROOT.index("functions", index);
        if function.name().is_empty() {
            faults.push(&path, Problem::NoName { what: "function" });
        }
        if let Some(first) = by_name.insert(key(function), index) {
            let (name, first) = (function.name().into(), format!("functions[{first}]"));
            faults.push(&path, Problem::Duplicate { what: "function", name, first });
        }
        functions.push(Arc::new(import::function(function, &context, faults, &path)));
    }
    let graph = match proto.graph() {
        Some(graph) => import::main_graph(graph, &context, faults, &Path::ROOT.field("graph")),
        None => {
            faults.push(&Path::ROOT, Problem::NoGraph);
            Graph::default()
        }
    };
    crate::calls::check(&functions, &by_name, faults);
    Imported { graph, functions, by_name, catalogue }
}

fn key(function: &FunctionProto) -> FunctionKey {
    (canonical_domain(function.domain()).into(), function.name().into(), function.overload().into())
}

impl Model {
    /// Opens a model file. The file and those of its external payloads are mapped; of payloads nothing is read.
    ///
    /// # Errors
    /// When a file cannot be mapped or is no model, or with all faults that [`verify`](crate::verify) would call
    /// fatal: see [`Problem`].
    pub fn open(path: impl AsRef<FilePath>, options: &OpenOptions) -> Result<Model, Error> {
        let path = path.as_ref();
        let bytes = Bytes::map_file(path).map_err(heirloom_proto::Error::from)?;
        let decoded = ModelProto::decode(bytes);
        let proto =
            decoded.map_err(|source| heirloom_proto::Error::Decode { file: Some(path.into()), source })?;
        Model::import(proto, Some(path), Some(folder_of(path)), options)
    }

    /// A model given as bytes. External payloads are looked up in `base_dir` alone, never in the current folder;
    /// without one, constants whose payloads are external are
    /// [`Initializer::Unavailable`](crate::Initializer::Unavailable).
    ///
    /// # Errors
    /// As [`open`](Model::open).
    pub fn from_bytes(
        bytes: Bytes,
        base_dir: Option<&FilePath>,
        options: &OpenOptions,
    ) -> Result<Model, Error> {
        let decoded = ModelProto::decode(bytes);
        let proto = decoded.map_err(|source| heirloom_proto::Error::Decode { file: None, source })?;
        Model::import(proto, None, base_dir, options)
    }

    /// A model given as a message, as [`from_bytes`](Model::from_bytes).
    ///
    /// # Errors
    /// As [`open`](Model::open).
    pub fn from_proto(
        proto: ModelProto,
        base_dir: Option<&FilePath>,
        options: &OpenOptions,
    ) -> Result<Model, Error> {
        Model::import(proto, None, base_dir, options)
    }

    fn import(
        proto: ModelProto,
        path: Option<&FilePath>,
        base_dir: Option<&FilePath>,
        options: &OpenOptions,
    ) -> Result<Model, Error> {
        let resolver = options.resolver(base_dir)?;
        let mut faults = FaultList::default();
        let imported = import_model(&proto, &resolver, options.allow_missing_files, false, &mut faults);
        if !faults.is_empty() {
            return Err(Error::Invalid { file: path.map(PathBuf::from), faults: Faults(faults.into_vec()) });
        }
        let metadata = proto.metadata_props().iter().map(|entry| (entry.key().into(), entry.value().into()));
        Ok(Model {
            graph: Arc::new(imported.graph),
            functions: imported.functions,
            by_name: imported.by_name,
            catalogue: Arc::new(imported.catalogue),
            opset_imports: opsets(proto.opset_import()),
            metadata: metadata.collect(),
            path: path.map(PathBuf::from),
            resolver,
            options: options.clone(),
            proto,
        })
    }

    /// Another message with this model's folder and options, checked as a whole.
    ///
    /// # Errors
    /// With all faults that forbid to open it.
    pub fn with_proto(&self, proto: ModelProto) -> Result<Model, Error> {
        let mut model = Model::import(proto, None, self.resolver.base_dir(), &self.options)?;
        model.path.clone_from(&self.path);
        Ok(model)
    }

    /// The main graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The functions in the order of the file.
    pub fn functions(&self) -> &[Arc<Function>] {
        &self.functions
    }

    /// The function that a node with this operator calls; `None` where the operator is no function of the model.
    pub fn function(&self, domain: &str, name: &str, overload: &str) -> Option<&Arc<Function>> {
        let key = (canonical_domain(domain).into(), name.into(), overload.into());
        self.by_name.get(&key).and_then(|&index| self.functions.get(index))
    }

    /// The declared struct types.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// The operator sets that the main graph uses, with their versions.
    pub fn opset_imports(&self) -> &[(String, i64)] {
        &self.opset_imports
    }

    /// The version of a domain's operator set; `ai.onnx` and the empty domain are the same.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        version_of(&self.opset_imports, domain)
    }

    /// The version of the representation.
    pub fn ir_version(&self) -> i64 {
        self.proto.ir_version()
    }

    /// The model's annotations in the order of the file.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// One annotation.
    pub fn metadata_value(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// The message that the model was made from.
    pub fn proto(&self) -> &ModelProto {
        &self.proto
    }

    /// The file that the model was opened from.
    pub fn path(&self) -> Option<&FilePath> {
        self.path.as_deref()
    }

    /// Finds the files of external payloads.
    pub fn resolver(&self) -> &ExternalResolver {
        &self.resolver
    }

    /// Every fault of the model; those that forbid to open one cannot occur.
    pub fn verify(&self) -> Vec<Fault> {
        crate::verify(&self.proto, &self.resolver)
    }
}
