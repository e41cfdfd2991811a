//! Short ways to write what the tests need.

use heirloom_mem::{Bytes, DType, Shape, Tensor};
use heirloom_proto::struct_type_proto::bit_packing::Component;
use heirloom_proto::struct_type_proto::structure::Field;
use heirloom_proto::struct_type_proto::{Array, BitPacking, Structure};
use heirloom_proto::{EncodedValueProto, StructTypeProto, TypeProto};
use heirloom_types::{Affine, TensorType, ValueType, tensor_to_proto};

pub(crate) fn bytes(data: &[u8]) -> Bytes {
    Bytes::from_vec(data.to_vec())
}

pub(crate) fn logical(dtype: DType, shape: &[usize]) -> TensorType {
    TensorType { dtype, shape: Shape::from_slice(shape) }
}

pub(crate) fn affine(
    storage: DType,
    scale_shape: &[usize],
    scales: &[f32],
    axis: Option<usize>,
    block_size: Option<usize>,
) -> Affine {
    let scale = Tensor::from_vec(scale_shape, scales.to_vec()).unwrap();
    Affine { storage, scale, zero_point: None, axis, block_size }
}

/// A tensor type.
pub(crate) fn tensor(dtype: DType, shape: &[usize]) -> TypeProto {
    ValueType::tensor(dtype, shape).to_proto()
}

/// A struct type as a value type.
pub(crate) fn nested(ty: StructTypeProto) -> TypeProto {
    let mut proto = TypeProto::new();
    proto.set_struct_type(ty);
    proto
}

pub(crate) fn reference(id: u64) -> StructTypeProto {
    let mut proto = StructTypeProto::new();
    proto.set_type_ref(id);
    proto
}

pub(crate) fn array(element: TypeProto, count: u64) -> StructTypeProto {
    let mut array = Array::new();
    array.set_element_type(element);
    array.set_dimension(count);
    let mut proto = StructTypeProto::new();
    proto.set_array(array);
    proto
}

pub(crate) fn packing(components: &[(&str, u32)], count: u64) -> StructTypeProto {
    let mut packing = BitPacking::new();
    for (name, width) in components {
        let mut component = Component::new();
        component.set_name(name);
        component.set_bit_width(*width);
        packing.component_mut().push(component);
    }
    packing.set_dimension(count);
    let mut proto = StructTypeProto::new();
    proto.set_bit_packing(packing);
    proto
}

pub(crate) fn field(name: &str, ty: TypeProto) -> Field {
    let mut field = Field::new();
    field.set_name(name);
    field.set_type(ty);
    field
}

pub(crate) fn constant(name: &str, tensor: &Tensor) -> Field {
    let mut field = Field::new();
    field.set_name(name);
    field.set_constant(tensor_to_proto(tensor, "").unwrap());
    field
}

pub(crate) fn structure(fields: Vec<Field>) -> StructTypeProto {
    let mut structure = Structure::new();
    structure.field_mut().extend(fields);
    let mut proto = StructTypeProto::new();
    proto.set_structure(structure);
    proto
}

/// The declaration with an identity.
pub(crate) fn declared(id: u64, mut proto: StructTypeProto) -> StructTypeProto {
    proto.set_type_id(id);
    proto
}

/// An encoded value of a struct type.
pub(crate) fn encoded(ty: StructTypeProto, logical: Option<TypeProto>, payload: &[u8]) -> EncodedValueProto {
    let mut proto = EncodedValueProto::new();
    proto.set_struct_type(ty);
    if let Some(logical) = logical {
        proto.set_logical_type(logical);
    }
    proto.set_raw_data(bytes(payload));
    proto
}

/// An affine value as a message.
pub(crate) fn affine_value(affine: &Affine, logical: TypeProto, payload: &[u8]) -> EncodedValueProto {
    let mut proto = EncodedValueProto::new();
    proto.set_affine(affine.to_proto().unwrap());
    proto.set_logical_type(logical);
    proto.set_raw_data(bytes(payload));
    proto
}
