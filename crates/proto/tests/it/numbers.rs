//! Field numbers, types and enum values: ONNX's own against its package, ours against the contract.

use std::collections::BTreeSet;
use std::process::Command;

use heirloom_proto::{FieldKind, MessageInfo, for_each_message};

use crate::python;

/// What `tests/python/fields.py` prints for onnx 1.23.2.
const ONNX: &str = include_str!("onnx_fields.txt");

/// The contract's fields.
const OURS: &str = "\
AffineLayoutProto.axis 4 int64
AffineLayoutProto.block_size 5 uint64
AffineLayoutProto.scale 2 TensorProto
AffineLayoutProto.storage_type 1 TensorProto.DataType
AffineLayoutProto.zero_point 3 TensorProto
EncodedValueProto.affine 1 AffineLayoutProto oneof layout
EncodedValueProto.data_location 6 TensorProto.DataLocation
EncodedValueProto.doc_string 8 string
EncodedValueProto.external_data 5 StringStringEntryProto repeated
EncodedValueProto.logical_type 3 TypeProto
EncodedValueProto.name 7 string
EncodedValueProto.raw_data 4 bytes
EncodedValueProto.struct_type 2 StructTypeProto oneof layout
GraphProto.encoded_initializer 1000 EncodedValueProto repeated
GraphProto.persistent_bindings 1001 PersistentBindingProto repeated
ModelProto.struct_types 1000 StructTypeProto repeated
PersistentBindingProto.input_name 1 string
PersistentBindingProto.output_name 2 string
StructTypeProto.Array.dimension 2 uint64
StructTypeProto.Array.element_type 1 TypeProto
StructTypeProto.BitPacking.Component.bit_width 2 uint32
StructTypeProto.BitPacking.Component.name 1 string
StructTypeProto.BitPacking.component 1 StructTypeProto.BitPacking.Component repeated
StructTypeProto.BitPacking.dimension 2 uint64
StructTypeProto.Structure.Field.constant 4 TensorProto oneof content
StructTypeProto.Structure.Field.doc_string 3 string
StructTypeProto.Structure.Field.name 1 string
StructTypeProto.Structure.Field.type 2 TypeProto oneof content
StructTypeProto.Structure.field 1 StructTypeProto.Structure.Field repeated
StructTypeProto.array 1 StructTypeProto.Array oneof kind
StructTypeProto.bit_packing 3 StructTypeProto.BitPacking oneof kind
StructTypeProto.decoder 5 FunctionProto
StructTypeProto.doc_string 8 string
StructTypeProto.encoder 6 FunctionProto
StructTypeProto.metadata_props 9 StringStringEntryProto repeated
StructTypeProto.name 7 string
StructTypeProto.structure 2 StructTypeProto.Structure oneof kind
StructTypeProto.type_id 10 uint64
StructTypeProto.type_ref 4 uint64 oneof kind
TypeProto.struct_type 1000 StructTypeProto oneof value";

fn lines(info: &MessageInfo) -> Vec<String> {
    let line = |field: &heirloom_proto::FieldInfo| {
        let kind = match field.kind {
            FieldKind::Enum(name) | FieldKind::Message(name) => name.to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let list = match (field.repeated, field.packed) {
            (true, true) => " packed",
            (true, false) => " repeated",
            _ => "",
        };
        let oneof = field.oneof.map_or_else(String::new, |oneof| format!(" oneof {oneof}"));
        format!("{}.{} {} {kind}{list}{oneof}", info.name, field.name, field.number)
    };
    info.fields.iter().map(line).collect()
}

// proves: W1, W2
#[test]
fn every_field_has_the_number_and_type_of_onnx_or_of_the_contract() {
    let mut here = BTreeSet::new();
    macro_rules! add {
        ($message:ty) => {
            here.extend(lines(<$message>::info()))
        };
    }
    for_each_message!(add);
    let fields_of_onnx = ONNX.lines().filter(|line| !line.contains(" = "));
    let expected: BTreeSet<String> = fields_of_onnx.chain(OURS.lines()).map(str::to_owned).collect();
    let missing: Vec<_> = expected.difference(&here).collect();
    let extra: Vec<_> = here.difference(&expected).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:#?}, extra {extra:#?}");
}

// proves: W2
#[test]
fn every_enum_value_has_the_number_of_onnx() {
    use heirloom_proto as p;
    let enums: &[(&str, &[(&str, i32)])] = &[
        ("AttributeProto.AttributeType", p::attribute_proto::AttributeType::NAMED),
        ("OperatorStatus", p::OperatorStatus::NAMED),
        ("OptionalProto.DataType", p::optional_proto::DataType::NAMED),
        ("SequenceProto.DataType", p::sequence_proto::DataType::NAMED),
        ("TensorProto.DataLocation", p::tensor_proto::DataLocation::NAMED),
        ("TensorProto.DataType", p::tensor_proto::DataType::NAMED),
        ("Version", p::Version::NAMED),
    ];
    let of_enum = |(name, values): &(&str, &[(&str, i32)])| -> Vec<String> {
        values.iter().map(|(value, number)| format!("{name} = {value} {number}")).collect()
    };
    let here: BTreeSet<String> = enums.iter().flat_map(of_enum).collect();
    let expected: BTreeSet<String> =
        ONNX.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect();
    assert_eq!(here, expected);
}

// proves: W2
#[test]
fn the_recorded_fields_are_those_of_the_installed_onnx_package() {
    if python::onnx_package().is_none() {
        return;
    }
    let output = Command::new(python::interpreter()).arg(python::script("fields.py")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), ONNX);
}

// proves: W1
#[test]
fn no_onnx_field_lies_in_the_range_of_extensions() {
    let number = |line: &str| line.split(' ').nth(1).and_then(|word| word.parse::<u32>().ok());
    assert!(ONNX.lines().filter_map(number).all(|number| !(1000..=1099).contains(&number)));
}
