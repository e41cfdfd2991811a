//! What goes in comes out.

use heirloom_mem::Bytes;
use heirloom_proto::attribute_proto::AttributeType;
use heirloom_proto::{
    AttributeProto, EncodedValueProto, GraphProto, ModelProto, NOT_UTF8, NodeProto, OperatorSetIdProto,
    TensorProto, TypeProto, type_proto,
};

use crate::model::{encoded, entry, field, full_model, node, unknown_of_every_wire_type};

fn decode(bytes: Vec<u8>) -> ModelProto {
    ModelProto::decode(Bytes::from_vec(bytes)).unwrap()
}

/// Appends unknown fields to an encoded message.
fn with_unknown(bytes: &[u8], number: u64) -> Vec<u8> {
    [bytes, &unknown_of_every_wire_type(number)].concat()
}

/// The full model with unknown fields 777 and 2000 in the model, its graph, a node, an encoded value and its type.
fn model_with_unknown_fields() -> Vec<u8> {
    let both = |bytes: &[u8]| with_unknown(&with_unknown(bytes, 777), 2000);
    let mut model = full_model();
    let graph = model.graph_mut();
    let node = both(&graph.node()[0].to_bytes());
    graph.node_mut()[0] = NodeProto::decode(Bytes::from_vec(node)).unwrap();
    let ty = both(&graph.encoded_initializer()[0].struct_type().unwrap().to_bytes());
    let value = &mut graph.encoded_initializer_mut()[0];
    value.set_struct_type(heirloom_proto::StructTypeProto::decode(Bytes::from_vec(ty)).unwrap());
    let value = both(&value.to_bytes());
    graph.encoded_initializer_mut()[0] = EncodedValueProto::decode(Bytes::from_vec(value)).unwrap();
    let bytes = both(&graph.to_bytes());
    *graph = GraphProto::decode(Bytes::from_vec(bytes)).unwrap();
    both(&model.to_bytes())
}

// proves: W3
#[test]
fn u43_load_and_save_gives_identical_bytes() {
    let bytes = model_with_unknown_fields();
    let model = decode(bytes.clone());
    assert_eq!(&*model.to_bytes(), &bytes[..]);
    assert_eq!(&*model.to_canonical_bytes(), &bytes[..]);
    assert_eq!(model.unknown_fields().len(), 10);
    let graph = model.graph().unwrap();
    assert_eq!(graph.unknown_fields().len(), 10);
    assert_eq!(graph.node()[0].unknown_fields().len(), 10);
    let value = &graph.encoded_initializer()[0];
    assert_eq!(value.unknown_fields().len(), 10);
    let of_type = value.struct_type().unwrap().unknown_fields();
    assert_eq!(
        of_type.iter().map(|f| (f.number, f.wire_type)).take(5).collect::<Vec<_>>(),
        [(777, 0), (777, 1), (777, 2), (777, 3), (777, 5)]
    );
}

// proves: W3
#[test]
fn u43_renaming_an_output_changes_only_the_name_and_the_enclosing_lengths() {
    let bytes = model_with_unknown_fields();
    let mut model = decode(bytes.clone());
    model.graph_mut().node_mut()[1].output_mut().set(0, "PRESENT");
    model.graph_mut().output_mut()[0].set_name("PRESENT");
    let renamed = model.to_bytes();
    assert_eq!(renamed.len(), bytes.len());
    let differing: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != renamed[at]).collect();
    assert_eq!(differing.len(), 2 * "present".len());
    let upper: Vec<u8> = differing.iter().map(|&at| renamed[at]).collect();
    assert_eq!(upper, b"PRESENTPRESENT");

    model.graph_mut().output_mut()[0].set_name("a name that is longer");
    let longer = model.to_bytes();
    assert_eq!(longer.len(), bytes.len() + "a name that is longer".len() - "present".len());
    let mut back = decode(longer.to_vec());
    back.graph_mut().output_mut()[0].set_name("present");
    back.graph_mut().node_mut()[1].output_mut().set(0, "present");
    assert_eq!(&*back.to_bytes(), &bytes[..]);
}

// proves: W3
#[test]
fn a_field_with_the_wrong_wire_type_is_kept_as_an_unknown_one() {
    // ModelProto: ir_version (1) as bytes, graph (7) as a varint.
    let bytes = [field(1, 2, b"x"), field(7, 0, &[3])].concat();
    let mut model = decode(bytes.clone());
    assert!(!model.has_ir_version() && !model.has_graph());
    assert_eq!(model.unknown_fields().len(), 2);
    model.set_ir_version(14);
    assert_eq!(&*model.to_bytes(), &[field(1, 0, &[14]), bytes].concat()[..]);
}

// proves: W3
#[test]
fn presence_of_empty_and_zero_fields_is_kept() {
    let mut opset = OperatorSetIdProto::new();
    opset.set_domain("");
    opset.set_version(0);
    assert_eq!(&*opset.to_bytes(), &[0x0a, 0, 0x10, 0]);
    let mut read = OperatorSetIdProto::decode(opset.to_bytes()).unwrap();
    assert!(read.has_domain() && read.has_version());
    assert_eq!(&*read.to_canonical_bytes(), &[0x0a, 0, 0x10, 0]);
    read.clear_domain();
    assert!(!read.has_domain());
    assert_eq!(&*read.to_bytes(), &[0x10, 0]);

    let mut tensor = TensorProto::new();
    assert_eq!((tensor.raw_data(), tensor.to_bytes().len()), (None, 0));
    tensor.set_raw_data(Bytes::empty());
    assert!(TensorProto::decode(tensor.to_bytes()).unwrap().has_raw_data());
}

// proves: W3
#[test]
fn an_enum_value_without_a_name_is_kept() {
    let mut attribute = AttributeProto::new();
    attribute.set_type(AttributeType(99));
    let read = AttributeProto::decode(attribute.to_bytes()).unwrap();
    assert_eq!(read.type_(), AttributeType(99));
    assert_eq!((read.type_().name(), AttributeType::GRAPH.name()), (None, Some("GRAPH")));
    assert_eq!(read.to_canonical_bytes(), attribute.to_bytes());
}

// proves: W3
#[test]
fn a_string_that_is_no_utf8_is_kept_and_told_apart_from_an_empty_one() {
    let bytes = field(2, 2, b"caf\xe9");
    let mut model = decode(bytes.clone());
    assert_eq!(model.producer_name(), NOT_UTF8);
    assert_eq!(model.producer_name_bytes(), b"caf\xe9");
    assert_eq!(model.find_invalid_utf8(), Some("ModelProto.producer_name".into()));
    model.set_ir_version(1);
    assert_eq!(&*model.to_bytes(), &[field(1, 0, &[1]), bytes].concat()[..]);
    let node =
        NodeProto::decode(Bytes::from_vec([field(1, 2, b"ok"), field(1, 2, b"\xff")].concat())).unwrap();
    assert_eq!(node.input().iter().collect::<Vec<_>>(), ["ok", NOT_UTF8]);
    assert_eq!(node.find_invalid_utf8(), Some("NodeProto.input[1]".into()));
}

// proves: W3
#[test]
fn known_fields_out_of_order_stay_so_until_the_message_is_touched() {
    let bytes = [field(5, 0, &[2]), field(777, 0, &[1]), field(1, 0, &[9])].concat();
    let mut model = decode(bytes.clone());
    assert_eq!(&*model.to_bytes(), &bytes[..]);
    assert_eq!(model.original().unwrap().len(), bytes.len());
    model.set_model_version(3);
    assert_eq!(model.original(), None);
    assert_eq!(&*model.to_bytes(), &[field(1, 0, &[9]), field(5, 0, &[3]), field(777, 0, &[1])].concat()[..]);
}

// proves: W3
#[test]
fn a_message_that_occurs_twice_is_merged_and_loses_nothing() {
    let first = [field(2, 2, b"one"), field(777, 0, &[1]), field(1, 2, &field(4, 2, b"A"))].concat();
    let second =
        [field(10, 2, b"doc"), field(2, 2, b"two"), field(888, 0, &[2]), field(1, 2, &field(4, 2, b"B"))];
    let second = second.concat();
    let bytes = [field(7, 2, &first), field(1, 0, &[8]), field(7, 2, &second)].concat();
    let mut model = decode(bytes.clone());
    let graph = model.graph().unwrap();
    assert_eq!((graph.name(), graph.doc_string()), ("two", "doc"));
    assert_eq!(graph.node().iter().map(NodeProto::op_type).collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(graph.unknown_fields().iter().map(|field| field.number).collect::<Vec<_>>(), [777, 888]);
    assert_eq!(&*model.to_bytes(), &bytes[..]);
    model.set_ir_version(9);
    let merged = [
        field(1, 2, &field(4, 2, b"A")),
        field(1, 2, &field(4, 2, b"B")),
        field(2, 2, b"two"),
        field(10, 2, b"doc"),
        field(777, 0, &[1]),
        field(888, 0, &[2]),
    ];
    assert_eq!(&*model.to_bytes(), &[field(1, 0, &[9]), field(7, 2, &merged.concat())].concat()[..]);
}

// proves: W3
#[test]
fn strings_of_a_merged_message_stay_those_that_were_read() {
    let node = |name: &[u8]| [field(1, 2, name), field(3, 2, name)].concat();
    // A map type's value type occurs twice, with strings in the first only.
    let dim = field(1, 2, &field(2, 2, b"batch"));
    let first = field(2, 2, &[field(1, 2, &field(2, 2, &dim)), field(6, 2, b"meaning")].concat());
    let second = field(2, 2, &field(1, 2, &field(1, 0, &[1])));
    let ty = TypeProto::decode(Bytes::from_vec(field(5, 2, &[first, second].concat()))).unwrap();
    let Some(type_proto::Value::MapType(map)) = ty.value() else { panic!("{ty:?}") };
    let value = map.value_type().unwrap();
    assert_eq!(value.denotation(), "meaning");
    let tensor = value.tensor_type().unwrap();
    assert_eq!(tensor.elem_type(), 1);
    assert_eq!(tensor.shape().unwrap().dim()[0].dim_param(), Some("batch"));
    let graph =
        GraphProto::decode(Bytes::from_vec([field(1, 2, &node(b"x")), field(1, 2, &node(b"y"))].concat()));
    assert_eq!(graph.unwrap().node()[1].input(), ["y"]);
}

#[test]
fn a_later_alternative_of_a_oneof_replaces_an_earlier_one() {
    let tensor = field(1, 2, &field(1, 0, &[1]));
    let sequence = field(4, 2, &[]);
    let ty = TypeProto::decode(Bytes::from_vec([tensor.clone(), sequence].concat())).unwrap();
    assert!(matches!(ty.value(), Some(type_proto::Value::SequenceType(_))));
    assert!(!ty.has_tensor_type() && ty.tensor_type().is_none());
    let ty = TypeProto::decode(Bytes::from_vec([field(4, 2, &[]), tensor].concat())).unwrap();
    assert_eq!(ty.tensor_type().map(type_proto::Tensor::elem_type), Some(1));
}

#[test]
fn oneof_members_are_written_by_number_among_the_other_fields() {
    let mut ty = TypeProto::new();
    ty.set_denotation("x");
    ty.opaque_type_mut().set_name("o");
    assert_eq!(&*ty.to_bytes(), &[field(6, 2, b"x"), field(7, 2, &field(2, 2, b"o"))].concat()[..]);
    ty.tensor_type_mut();
    assert_eq!(&*ty.to_bytes(), &[field(1, 2, &[]), field(6, 2, b"x")].concat()[..]);
}

#[test]
fn clones_share_bytes_and_change_independently() {
    let model = decode(full_model().to_bytes().to_vec());
    let mut other = model.clone();
    assert_eq!(other, model);
    let raw = |model: &ModelProto| model.graph().unwrap().initializer()[0].raw_data().unwrap().address();
    assert_eq!(raw(&other), raw(&model));
    other.graph_mut().set_name("other");
    assert_ne!(other, model);
    assert_eq!(model.graph().unwrap().name(), "main");
    assert_eq!(&*model.to_bytes(), &*full_model().to_bytes());
}

#[test]
fn equality_is_of_fields_not_of_bytes() {
    let a = decode([field(1, 0, &[1]), field(5, 0, &[2])].concat());
    let b = decode([field(5, 0, &[2]), field(1, 0, &[0x81, 0])].concat());
    assert_eq!(a, b);
    assert_ne!(a, decode([field(1, 0, &[1]), field(5, 0, &[2]), field(777, 0, &[0])].concat()));
    assert_ne!(encoded("a"), encoded("b"));
}

#[test]
fn lists_of_strings_are_edited_in_place() {
    let read = NodeProto::decode(node("Add", &["a", "b"], &["c"]).to_bytes()).unwrap();
    let mut changed = read.clone();
    let mut inputs = changed.input_mut();
    inputs.set(1, "B");
    inputs.push("d");
    inputs.insert(0, "first");
    inputs.remove(1);
    assert_eq!(inputs.get(), ["first", "B", "d"]);
    assert_eq!(NodeProto::decode(changed.to_bytes()).unwrap().input(), ["first", "B", "d"]);
    assert_eq!(read.input(), ["a", "b"]);
    changed.input_mut().truncate(1);
    changed.output_mut().clear();
    assert_eq!((changed.input().len(), changed.output().is_empty()), (1, true));
}

#[test]
fn removing_unknown_fields_keeps_the_strings_that_lay_between_them() {
    let bytes = [field(777, 2, b"gone"), field(2, 2, b"name"), field(778, 0, &[1])].concat();
    let mut model = decode(bytes);
    model.metadata_props_mut().push(entry("k", "v"));
    model.clear_unknown_fields();
    assert_eq!(model.producer_name(), "name");
    assert!(model.unknown_fields().is_empty());
    let rest = field(14, 2, &entry("k", "v").to_bytes());
    assert_eq!(&*model.to_bytes(), &[field(2, 2, b"name"), rest].concat()[..]);
}

#[test]
fn number_lists_are_read_packed_or_not_and_written_as_onnx_writes_them() {
    // AttributeProto.ints (8) packed, then alone; TensorProto.int64_data (7) alone, then packed.
    let attribute =
        AttributeProto::decode(Bytes::from_vec([field(8, 2, &[1, 2]), field(8, 0, &[3])].concat())).unwrap();
    assert_eq!(attribute.ints(), [1, 2, 3]);
    let written = [field(8, 0, &[1]), field(8, 0, &[2]), field(8, 0, &[3])].concat();
    assert_eq!(&*attribute.to_canonical_bytes(), &written[..]);
    let tensor =
        TensorProto::decode(Bytes::from_vec([field(7, 0, &[1]), field(7, 2, &[2, 3])].concat())).unwrap();
    assert_eq!(tensor.int64_data().iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(tensor.int64_data().bytes(), None);
    assert_eq!(&*tensor.to_canonical_bytes(), &field(7, 2, &[1, 2, 3])[..]);
    // A varint that is longer than it must be is written short.
    let padded = TensorProto::decode(Bytes::from_vec(field(7, 2, &[0x81, 0x80, 0]))).unwrap();
    assert_eq!(padded.int64_data().iter().collect::<Vec<_>>(), [1]);
    assert_eq!(&*padded.to_canonical_bytes(), &field(7, 2, &[1])[..]);
    // Narrow integers take the low bits.
    let narrow = TensorProto::decode(Bytes::from_vec(field(5, 2, &[0xff, 0xff, 0xff, 0xff, 0x1f]))).unwrap();
    assert_eq!(narrow.int32_data().iter().collect::<Vec<_>>(), [-1]);
}
