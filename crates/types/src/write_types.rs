//! Types as messages.

use heirloom_proto::struct_type_proto::bit_packing::Component as ComponentProto;
use heirloom_proto::struct_type_proto::structure::Field as FieldProto;
use heirloom_proto::struct_type_proto::{Array, BitPacking, Structure};
use heirloom_proto::tensor_shape_proto::Dimension;
use heirloom_proto::{StructTypeProto, TensorProto, TensorShapeProto, TypeProto, type_proto};

use crate::struct_type::{Constant, Content, Kind};
use crate::{Catalogue, Dim, StructType, TensorSpec, ValueType, strings_to_proto, tensor_to_proto};

impl StructType {
    /// The declaration as a message: the one it was read from, else a new one. Nested types with an identity are
    /// references, others stand inline. Constants share their bytes.
    pub fn to_proto(&self) -> StructTypeProto {
        if let Some(source) = &self.source {
            return (**source).clone();
        }
        let mut proto = StructTypeProto::new();
        match &self.kind {
            Kind::Array { element, count } => {
                let mut array = Array::new();
                array.set_element_type(element.to_proto());
                array.set_dimension(*count);
                proto.set_array(array);
            }
            Kind::Structure(fields) => {
                let mut structure = Structure::new();
                structure.field_mut().extend(fields.iter().map(|field| {
                    let mut proto = FieldProto::new();
                    proto.set_name(&field.name);
                    match &field.content {
                        Content::Type(ty) => proto.set_type(ty.to_proto()),
                        Content::Constant(constant) => proto.set_constant(constant.to_proto()),
                    }
                    proto
                }));
                proto.set_structure(structure);
            }
            Kind::BitPacking { components, count } => {
                let mut packing = BitPacking::new();
                packing.component_mut().extend(components.iter().map(|component| {
                    let mut proto = ComponentProto::new();
                    proto.set_name(&component.name);
                    proto.set_bit_width(component.bit_width);
                    proto
                }));
                packing.set_dimension(*count);
                proto.set_bit_packing(packing);
            }
        }
        if !self.name.is_empty() {
            proto.set_name(&self.name);
        }
        if let Some(id) = self.type_id {
            proto.set_type_id(id.get());
        }
        if let Some(decoder) = &self.decoder {
            proto.set_decoder((**decoder).clone());
        }
        if let Some(encoder) = &self.encoder {
            proto.set_encoder((**encoder).clone());
        }
        proto
    }

    /// The message by which others name the type: a reference where it has an identity, else the declaration.
    pub fn to_reference(&self) -> StructTypeProto {
        match self.type_id {
            None => self.to_proto(),
            Some(id) => {
                let mut proto = StructTypeProto::new();
                proto.set_type_ref(id.get());
                proto
            }
        }
    }
}

impl Constant {
    /// The constant as a message.
    pub fn to_proto(&self) -> TensorProto {
        match self {
            Constant::Tensor(tensor) => tensor_to_proto(tensor, "").expect("constants are dense"),
            Constant::Strings(strings) => strings_to_proto(strings, ""),
        }
    }
}

impl ValueType {
    /// The type as a message.
    pub fn to_proto(&self) -> TypeProto {
        let mut proto = TypeProto::new();
        match self {
            ValueType::Tensor(spec) => {
                let mut tensor = type_proto::Tensor::new();
                tensor.set_elem_type(spec.dtype.onnx());
                if let Some(shape) = shape_to_proto(spec) {
                    tensor.set_shape(shape);
                }
                proto.set_tensor_type(tensor);
            }
            ValueType::Sparse(spec) => {
                let mut tensor = type_proto::SparseTensor::new();
                tensor.set_elem_type(spec.dtype.onnx());
                if let Some(shape) = shape_to_proto(spec) {
                    tensor.set_shape(shape);
                }
                proto.set_sparse_tensor_type(tensor);
            }
            ValueType::Struct(ty) => proto.set_struct_type(ty.to_reference()),
            ValueType::AnyStruct => proto.set_struct_type(StructTypeProto::new()),
            ValueType::Sequence(element) => {
                let mut sequence = type_proto::Sequence::new();
                sequence.set_elem_type(element.to_proto());
                proto.set_sequence_type(sequence);
            }
            ValueType::Map { key, value } => {
                let mut map = type_proto::Map::new();
                map.set_key_type(key.onnx());
                map.set_value_type(value.to_proto());
                proto.set_map_type(map);
            }
            ValueType::Optional(element) => {
                let mut optional = type_proto::Optional::new();
                optional.set_elem_type(element.to_proto());
                proto.set_optional_type(optional);
            }
            ValueType::Opaque { domain, name } => {
                let mut opaque = type_proto::Opaque::new();
                opaque.set_domain(domain);
                opaque.set_name(name);
                proto.set_opaque_type(opaque);
            }
        }
        proto
    }
}

fn shape_to_proto(spec: &TensorSpec) -> Option<TensorShapeProto> {
    let mut shape = TensorShapeProto::new();
    shape.dim_mut().extend(spec.dims.as_ref()?.iter().map(|dim| {
        let mut proto = Dimension::new();
        match dim {
            Dim::Known(extent) => proto.set_dim_value(*extent as i64),
            Dim::Param(symbol) => proto.set_dim_param(symbol),
            Dim::Unknown => {}
        }
        proto
    }));
    Some(shape)
}

impl Catalogue {
    /// The declarations as a model's `struct_types`.
    pub fn to_protos(&self) -> Vec<StructTypeProto> {
        self.iter().map(|ty| ty.to_proto()).collect()
    }
}
