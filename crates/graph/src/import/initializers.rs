//! Constants of a graph: dense, sparse and encoded.

use std::sync::Arc;

use heirloom_proto::{EncodedValueProto, GraphProto, SparseTensorProto, TensorProto};
use heirloom_types::{Constant, TensorError};

use super::Importer;
use crate::graph::SparseTensor;
use crate::path::Path;
use crate::payload::{self, Failure};
use crate::sparse::fitting_shape;
use crate::{Initializer, Problem};

impl Importer<'_> {
    pub(super) fn initializers(&mut self, proto: &GraphProto, path: &Path<'_>) {
        for (index, tensor) in proto.initializer().iter().enumerate() {
            let path = path.index("initializer", index);
            let initializer = match payload::tensor(tensor, self.context) {
                Ok(Constant::Tensor(tensor)) => Initializer::Tensor(tensor),
                Ok(Constant::Strings(strings)) => Initializer::Strings(strings),
                Err(failure) => match self.failed(failure, &path) {
                    Some(unavailable) => unavailable,
                    None => self.stand_in(tensor),
                },
            };
            self.initialize(tensor.name(), initializer, &path);
        }
        for (index, sparse) in proto.sparse_initializer().iter().enumerate() {
            let path = path.index("sparse_initializer", index);
            let name = sparse.values().map_or("", TensorProto::name);
            if let Some(initializer) = self.sparse(sparse, &path) {
                self.initialize(name, initializer, &path);
            }
        }
        for (index, encoded) in proto.encoded_initializer().iter().enumerate() {
            let path = path.index("encoded_initializer", index);
            if let Some(initializer) = self.encoded(encoded, &path) {
                self.initialize(encoded.name(), initializer, &path);
            }
        }
    }

    fn initialize(&mut self, name: &str, initializer: Initializer, path: &Path<'_>) {
        if name.is_empty() {
            self.fault(path, Problem::NoName { what: "initializer" });
            return;
        }
        if self.here().initialize(name, initializer).is_err() {
            let first = self.here().describe(name);
            self.fault(path, Problem::Duplicate { what: "initializer", name: name.into(), first });
        }
    }

    /// Lists a failure, or turns a missing file into a constant that says so.
    fn failed(&mut self, failure: Failure, path: &Path<'_>) -> Option<Initializer> {
        match failure {
            Failure::Missing(unavailable) => Some(Initializer::Unavailable(unavailable)),
            Failure::Problem(problem) => {
                self.fault(path, problem);
                None
            }
            Failure::Types(faults) => {
                self.faults.extend_types(path, faults.0);
                None
            }
        }
    }

    /// Keeps the name of a constant that could not be read, so that its readers are not reported as well.
    fn stand_in(&self, tensor: &TensorProto) -> Initializer {
        let location = String::new();
        let reason = "its data are at fault".into();
        Initializer::Unavailable(Arc::new(crate::Unavailable {
            name: tensor.name().into(),
            location,
            reason,
            logical: None,
        }))
    }

    /// A tensor that is no graph's constant: an attribute's.
    pub(super) fn tensor(&mut self, proto: &TensorProto, path: &Path<'_>) -> Option<Constant> {
        match payload::tensor(proto, self.context) {
            Ok(constant) => Some(constant),
            Err(Failure::Missing(missing)) => {
                // Attributes cannot wait for their file as constants can.
                self.fault(
                    path,
                    Problem::External { name: missing.name.clone(), reason: missing.reason.clone() },
                );
                None
            }
            Err(failure) => {
                self.failed(failure, path);
                None
            }
        }
    }

    pub(super) fn sparse(&mut self, proto: &SparseTensorProto, path: &Path<'_>) -> Option<Initializer> {
        let part = |importer: &mut Self, proto: Option<&TensorProto>, field: &'static str| {
            let path = path.field(field);
            let Some(proto) = proto else {
                importer.fault(&path, Problem::Sparse { reason: format!("`{field}` is missing") });
                return None;
            };
            match importer.tensor(proto, &path)? {
                Constant::Tensor(tensor) => Some(tensor),
                Constant::Strings(_) => {
                    importer.fault(&path, Problem::Tensor(TensorError::Strings));
                    None
                }
            }
        };
        let values = part(self, proto.values(), "values");
        let indices = part(self, proto.indices(), "indices");
        let (values, indices) = (values?, indices?);
        let sparse = fitting_shape(proto.dims(), &values, &indices)
            .map(|shape| SparseTensor { values, indices, shape })
            .and_then(
                |sparse| if self.context.is_strict { sparse.check().map(|()| sparse) } else { Ok(sparse) },
            );
        match sparse {
            Ok(sparse) => Some(Initializer::Sparse(Arc::new(sparse))),
            Err(reason) => {
                self.fault(path, Problem::Sparse { reason });
                None
            }
        }
    }

    fn encoded(&mut self, proto: &EncodedValueProto, path: &Path<'_>) -> Option<Initializer> {
        match payload::encoded(proto, self.context) {
            Ok(value) => Some(Initializer::Encoded(Arc::new(value))),
            Err(failure) => self.failed(failure, path).or_else(|| {
                Some(Initializer::Unavailable(Arc::new(crate::Unavailable {
                    name: proto.name().into(),
                    location: String::new(),
                    reason: "the value is at fault".into(),
                    logical: None,
                })))
            }),
        }
    }
}
