//! Constants of a graph in the making: dense, sparse, encoded; in the file or beside it.

use std::sync::Arc;

use heirloom_mem::{Bytes, Element, Tensor, element_count};
use heirloom_proto::{EncodedValueProto, ExternalLocation, SparseTensorProto, TensorProto};
use heirloom_types::{
    Affine, EncodedValue, StringTensor, StructType, TensorError, TensorType, ValueType, strings_to_proto,
    tensor_to_proto,
};

use super::body::{GraphBuilder, Var};
use crate::{Error, Problem, SparseTensor};

/// Where the bytes of an encoded constant are.
#[derive(Clone, Debug)]
pub enum PayloadSource {
    /// In the model file. The bytes are shared, not copied.
    Inline(Bytes),
    /// In a file beside the model, which is not touched; the length must be given.
    External(ExternalLocation),
}

impl From<Bytes> for PayloadSource {
    fn from(bytes: Bytes) -> PayloadSource {
        PayloadSource::Inline(bytes)
    }
}

impl From<ExternalLocation> for PayloadSource {
    fn from(place: ExternalLocation) -> PayloadSource {
        PayloadSource::External(place)
    }
}

fn refused(name: &str) -> impl Fn(Problem) -> Error + Copy {
    move |problem| Error::call(format!("initializer `{name}`"), problem)
}

impl GraphBuilder {
    /// Adds a dense constant. Its bytes are shared, not copied. One that has the name of an input is the value that
    /// the input takes where a call does not feed it.
    ///
    /// # Errors
    /// When the name is empty or taken (by another constant too), the input's type differs, or the tensor is a
    /// strided view.
    pub fn initializer(&mut self, name: &str, value: &Tensor) -> Result<Var, Error> {
        let proto = tensor_to_proto(value, name).map_err(|error| refused(name)(Problem::Tensor(error)))?;
        self.dense(name, proto, &ValueType::tensor(value.dtype(), value.shape()))
    }

    /// Adds a constant tensor of strings, as [`initializer`](GraphBuilder::initializer).
    ///
    /// # Errors
    /// As [`initializer`](GraphBuilder::initializer).
    pub fn strings(&mut self, name: &str, value: &StringTensor) -> Result<Var, Error> {
        let ty = ValueType::tensor(heirloom_mem::DType::String, &value.shape);
        self.dense(name, strings_to_proto(value, name), &ty)
    }

    /// Adds a dense constant whose bytes lie in a file beside the model. The file is not touched.
    ///
    /// # Errors
    /// When the name is empty or taken, the input's type differs, or the length is not that of the type.
    pub fn external_initializer(
        &mut self,
        name: &str,
        ty: &TensorType,
        place: &ExternalLocation,
    ) -> Result<Var, Error> {
        let expected = element_count(&ty.shape).and_then(|n| ty.dtype.payload_bytes(n));
        let expected = expected.and_then(|n| u64::try_from(n).ok());
        let shown = ValueType::tensor(ty.dtype, &ty.shape);
        let dims: Result<Vec<i64>, _> = ty.shape.iter().map(|&extent| i64::try_from(extent)).collect();
        let (Some(expected), Ok(dims)) = (expected, dims) else {
            let dims = Vec::new();
            return Err(refused(name)(Problem::Tensor(TensorError::Shape { dims })));
        };
        if place.length != Some(expected) {
            let actual = place.length.unwrap_or(0);
            return Err(refused(name)(Problem::Length { what: shown.to_string(), expected, actual }));
        }
        let mut proto = TensorProto::new();
        proto.set_name(name);
        proto.set_data_type(ty.dtype.onnx());
        proto.dims_mut().extend(dims);
        proto.set_external(place);
        self.dense(name, proto, &shown)
    }

    fn dense(&mut self, name: &str, proto: TensorProto, ty: &ValueType) -> Result<Var, Error> {
        let var = self.constant_named(name, Some(ty)).map_err(refused(name))?;
        self.proto.initializer_mut().push(proto);
        Ok(var)
    }

    /// Adds a scalar constant under a name that begins with `hint`.
    ///
    /// # Errors
    /// As [`initializer`](GraphBuilder::initializer).
    pub fn scalar<T: Element>(&mut self, hint: &str, value: T) -> Result<Var, Error> {
        let name = self.unique(hint);
        self.initializer(&name, &Tensor::scalar(value))
    }

    /// Adds a constant of one axis under a name that begins with `hint`.
    ///
    /// # Errors
    /// As [`initializer`](GraphBuilder::initializer).
    pub fn vector<T: Element>(&mut self, hint: &str, values: Vec<T>) -> Result<Var, Error> {
        let name = self.unique(hint);
        let tensor = Tensor::from_vec(&[values.len()], values);
        self.initializer(&name, &tensor.expect("as many elements as the axis has"))
    }

    /// Adds a sparse constant. Its bytes are shared, not copied.
    ///
    /// # Errors
    /// When the name is empty or taken, or values, positions and shape do not fit each other.
    pub fn sparse(&mut self, name: &str, value: &SparseTensor) -> Result<Var, Error> {
        let refused = refused(name);
        value.check().map_err(|reason| refused(Problem::Sparse { reason }))?;
        let part = |tensor: &Tensor, name: &str| tensor_to_proto(tensor, name).map_err(Problem::Tensor);
        let mut proto = SparseTensorProto::new();
        proto.set_values(part(&value.values, name).map_err(refused)?);
        proto.set_indices(part(&value.indices, "").map_err(refused)?);
        for &extent in &value.shape {
            proto.dims_mut().push(i64::try_from(extent).unwrap_or(i64::MAX));
        }
        let ty = heirloom_types::TensorSpec::concrete(value.values.dtype(), &value.shape);
        let var = self.constant_named(name, Some(&ValueType::Sparse(ty))).map_err(refused)?;
        self.proto.sparse_initializer_mut().push(proto);
        Ok(var)
    }

    /// Adds a constant in records of a struct type, which is declared in the model if it has an identity. `logical`
    /// is the tensor that the records stand for, if they stand for one. The payload is neither read nor copied.
    ///
    /// # Errors
    /// When the name is empty or taken, the type has no fixed size or its identity is another declaration's, or the
    /// payload is no whole number of records.
    pub fn encoded(
        &mut self,
        name: &str,
        ty: &Arc<StructType>,
        logical: Option<&TensorType>,
        payload: impl Into<PayloadSource>,
    ) -> Result<Var, Error> {
        self.core.common.lock().declare_struct(ty).map_err(refused(name))?;
        let mut proto = EncodedValueProto::new();
        proto.set_struct_type(ty.to_reference());
        self.add_encoded(name, proto, logical, payload.into())
    }

    /// Adds a constant of a type that the model declares already, by identity.
    ///
    /// # Errors
    /// When no type of that identity is declared, and as [`encoded`](GraphBuilder::encoded).
    pub fn encoded_by_id(
        &mut self,
        name: &str,
        type_id: u64,
        logical: Option<&TensorType>,
        payload: impl Into<PayloadSource>,
    ) -> Result<Var, Error> {
        let ty = self.core.common.lock().declared(type_id).map_err(refused(name))?;
        self.encoded(name, &ty, logical, payload)
    }

    /// Adds a constant of affine-quantized codes. The payload is not copied; at most its last byte is read.
    ///
    /// # Errors
    /// When the name is empty or taken, the parameters do not fit the logical type, or the payload has another
    /// length than its codes take.
    pub fn affine(
        &mut self,
        name: &str,
        layout: &Affine,
        logical: &TensorType,
        payload: impl Into<PayloadSource>,
    ) -> Result<Var, Error> {
        let mut proto = EncodedValueProto::new();
        proto.set_affine(layout.to_proto().map_err(|error| refused(name)(Problem::Type(error)))?);
        self.add_encoded(name, proto, Some(logical), payload.into())
    }

    /// Adds an encoded constant as another model holds it.
    ///
    /// # Errors
    /// As [`encoded`](GraphBuilder::encoded) and [`affine`](GraphBuilder::affine).
    pub fn encoded_value(&mut self, value: &EncodedValue) -> Result<Var, Error> {
        match &value.layout {
            heirloom_types::Layout::Affine(affine) => {
                let name = refused(&value.name);
                let logical = value.logical.as_ref();
                let missing = Problem::Type(heirloom_types::AffineError::NoLogicalType.into());
                self.affine(&value.name, affine, logical.ok_or_else(|| name(missing))?, value.payload.clone())
            }
            heirloom_types::Layout::Struct(layout) => {
                self.encoded(&value.name, &layout.declaration, value.logical.as_ref(), value.payload.clone())
            }
        }
    }

    fn add_encoded(
        &mut self,
        name: &str,
        mut proto: EncodedValueProto,
        logical: Option<&TensorType>,
        payload: PayloadSource,
    ) -> Result<Var, Error> {
        let refused = refused(name);
        let ty = logical.map(|logical| ValueType::tensor(logical.dtype, &logical.shape));
        if let Some(ty) = &ty {
            proto.set_logical_type(ty.to_proto());
        }
        match payload {
            PayloadSource::Inline(bytes) => proto.set_raw_data(bytes),
            PayloadSource::External(place) => proto.set_external(&place),
        }
        proto.set_name(name);
        let faults = EncodedValue::check(&proto, &self.core.common.lock().catalogue, None, "");
        if let Some(fault) = faults.into_iter().next() {
            return Err(refused(Problem::Type(fault.error)));
        }
        let var = self.constant_named(name, ty.as_ref()).map_err(refused)?;
        self.proto.encoded_initializer_mut().push(proto);
        Ok(var)
    }

    /// Takes the name of a constant; an input may have it already, of an agreeing type.
    fn constant_named(&mut self, name: &str, ty: Option<&ValueType>) -> Result<Var, Problem> {
        let is_input = self.core.scope.own(name) == Some("input") && !self.overridable.contains(name);
        let shared = if is_input {
            self.overridable.insert(name.into());
            name.into()
        } else {
            self.core.scope.define(name, "initializer")?
        };
        if let Some(ty) = ty {
            let noted = self.note_type(name, ty);
            if let Err(Problem::TypeConflict { name, declared, actual }) = noted {
                self.overridable.remove(&*name);
                return Err(Problem::InitializerType { name, declared, actual });
            }
        }
        Ok(Var::new(shared))
    }
}
