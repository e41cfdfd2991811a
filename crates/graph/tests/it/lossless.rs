//! Nothing is lost: unknown fields at every level, everything that ONNX has a place for, whatever is edited.

use heirloom_graph::{Model, ModelBuilder, OpenOptions, SaveOptions};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::{FieldKind, MessageInfo, ModelProto, StringStringEntryProto};
use heirloom_testkit::folder::TempFolder;

use crate::support::{block, vector};

/// The description of a message by its name.
fn info_of(name: &str) -> &'static MessageInfo {
    let mut found = None;
    macro_rules! look {
        ($message:ty) => {
            if <$message>::info().name == name {
                found = Some(<$message>::info());
            }
        };
    }
    heirloom_proto::for_each_message!(look);
    found.unwrap_or_else(|| panic!("no message `{name}`"))
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Rewrites a message on the wire: `text` replaces strings, `more` is called at each message's end.
fn rewrite(
    bytes: &[u8],
    info: &MessageInfo,
    text: &dyn Fn(&[u8]) -> Vec<u8>,
    more: &dyn Fn(&mut Vec<u8>),
) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        let tag = varint(bytes, &mut at);
        let field = info.fields.iter().find(|field| u64::from(field.number) == tag >> 3);
        match tag & 7 {
            0 => {
                varint(bytes, &mut at);
            }
            1 => at += 8,
            5 => at += 4,
            2 => {
                let length = varint(bytes, &mut at) as usize;
                let value = &bytes[at..at + length];
                at += length;
                let value = match field.map(|field| field.kind) {
                    Some(FieldKind::Message(name)) => rewrite(value, info_of(name), text, more),
                    Some(FieldKind::String) => text(value),
                    _ => value.to_vec(),
                };
                put_varint(&mut out, tag);
                put_varint(&mut out, value.len() as u64);
                out.extend(value);
                continue;
            }
            // A group: to its end, which stands right behind in these tests.
            _ => {
                varint(bytes, &mut at);
            }
        }
        out.extend(&bytes[start..at]);
    }
    more(&mut out);
    out
}

/// Fields 777 and 2000 of every wire type.
fn unknown_fields(to: &mut Vec<u8>) {
    for number in [777u64, 2000] {
        put_varint(to, number << 3);
        put_varint(to, 300);
        put_varint(to, number << 3 | 1);
        to.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        put_varint(to, number << 3 | 2);
        put_varint(to, 5);
        to.extend(b"plant");
        put_varint(to, number << 3 | 3);
        put_varint(to, number << 3 | 4);
        put_varint(to, number << 3 | 5);
        to.extend([9, 9, 9, 9]);
    }
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    let mut entry = StringStringEntryProto::new();
    entry.set_key(key);
    entry.set_value(value);
    entry
}

/// A model with everything that tools have been seen to drop.
fn everything() -> ModelProto {
    let mut model = ModelBuilder::new("everything");
    model.opset("", 24).unwrap();
    model.metadata("owner", "plant").doc("a model");
    let mut function = heirloom_graph::FunctionBuilder::new("local", "Twice");
    function.opset("", 24).unwrap();
    let a = function.input("plant").unwrap();
    let b = function.node("Add").input(&a).input(&a).doc("doubles").metadata("k", "v").output("b").unwrap();
    function.output(&b).unwrap();
    function.doc("a function");
    function.metadata("of", "function");
    model.function(function.finish().unwrap()).unwrap();
    let g = model.graph();
    g.doc("a graph");
    g.metadata("of", "graph");
    let x = g.input("plant", &vector(4)).unwrap();
    let sparse = heirloom_graph::SparseTensor {
        values: Tensor::from_vec(&[1], vec![5.0f32]).unwrap(),
        indices: Tensor::from_vec(&[1], vec![1i64]).unwrap(),
        shape: [4].into_iter().collect(),
    };
    g.sparse("few", &sparse).unwrap();
    g.initializer("w", &Tensor::from_vec(&[4], vec![1f32; 4]).unwrap()).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![0u8; 18])).unwrap();
    let s = g.node("Add").input(&x).input("w").doc("a node").metadata("of", "node").output("s").unwrap();
    let t = g.node("Twice").domain("local").input(&s).output("t").unwrap();
    g.value_type(&s, &vector(4)).unwrap();
    g.output(&t, &vector(4)).unwrap();
    g.bind("plant", "t").unwrap();
    let mut proto = model.finish().unwrap();
    {
        let graph = proto.graph_mut();
        graph.input_mut()[0].set_doc_string("a value");
        graph.input_mut()[0].metadata_props_mut().push(entry("of", "value"));
        let mut annotation = heirloom_proto::TensorAnnotation::new();
        annotation.set_tensor_name("plant");
        annotation.quant_parameter_tensor_names_mut().push(entry("SCALE_TENSOR", "w"));
        graph.quantization_annotation_mut().push(annotation);
        graph.encoded_initializer_mut()[0].set_doc_string("an encoded value");
    }
    let mut training = heirloom_proto::TrainingInfoProto::new();
    training.update_binding_mut().push(entry("w", "w_next"));
    proto.training_info_mut().push(training);
    proto
}

/// The same with fields that nobody knows in every message.
fn salted() -> Bytes {
    let plain = everything().to_bytes();
    Bytes::from_vec(rewrite(&plain, ModelProto::info(), &<[u8]>::to_vec, &unknown_fields))
}

// proves: W3, GB1
#[test]
fn u43_load_and_save_gives_identical_bytes() {
    let folder = TempFolder::new();
    let path = folder.write("in.onnx", &salted());
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let out = folder.path().join("out.onnx");
    model.save(&out, &SaveOptions::default()).unwrap();
    assert_eq!(std::fs::read(out).unwrap(), std::fs::read(&path).unwrap());
    // Onto itself, too.
    model.save(&path, &SaveOptions::default()).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), salted().to_vec());
}

// proves: W3, GB1, GB5
#[test]
fn u43_a_rename_changes_the_name_where_it_occurs_and_the_lengths_around_it() {
    let bytes = salted();
    let model = Model::from_bytes(bytes.clone(), None, &OpenOptions::default()).unwrap();
    let mut edit = model.edit();
    edit.rename("s", "sum of all").unwrap();
    let renamed = edit.finish().unwrap().proto().to_bytes();
    let replace = |text: &[u8]| if text == b"s" { b"sum of all".to_vec() } else { text.to_vec() };
    let expected = rewrite(&bytes, ModelProto::info(), &replace, &|_| ());
    // The node's own name is `s`, since nobody gave it another; renaming a value leaves nodes' names alone.
    let expected = expected_with_node_name(&expected);
    assert_eq!(renamed.len(), expected.len());
    assert!(*renamed == *expected, "the renamed model differs elsewhere");
}

/// Puts the name of the node that makes `s` back.
fn expected_with_node_name(bytes: &[u8]) -> Vec<u8> {
    let mut proto = ModelProto::decode(Bytes::from_vec(bytes.to_vec())).unwrap();
    let node = proto.graph_mut().node_mut().iter_mut().find(|node| node.name() == "sum of all").unwrap();
    node.set_name("s");
    proto.to_bytes().to_vec()
}

// proves: W3
#[test]
fn the_salted_model_holds_its_unknown_fields_in_every_message() {
    let proto = ModelProto::decode(salted()).unwrap();
    let graph = proto.graph().unwrap();
    let count = |fields: Vec<heirloom_proto::UnknownField>| fields.len();
    // Varint, eight bytes, bytes, group, four bytes for each of two numbers.
    assert_eq!(count(proto.unknown_fields()), 10);
    assert_eq!(count(graph.unknown_fields()), 10);
    assert_eq!(count(graph.encoded_initializer()[0].unknown_fields()), 10);
    assert_eq!(count(graph.persistent_bindings()[0].unknown_fields()), 10);
    assert_eq!(count(proto.struct_types()[0].structure().unwrap().field()[0].unknown_fields()), 10);
    assert_eq!(
        count(graph.quantization_annotation()[0].quant_parameter_tensor_names()[0].unknown_fields()),
        10
    );
}

// proves: W3, GB1
#[test]
fn a_moved_payload_leaves_everything_else_as_it_was() {
    let folder = TempFolder::new();
    let path = folder.write("in.onnx", &salted());
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let out = folder.path().join("out.onnx");
    let file = heirloom_graph::PayloadFile::default().threshold(1);
    model.save(&out, &SaveOptions::default().external(heirloom_graph::External::File(file))).unwrap();
    let moved = Model::open(&out, &OpenOptions::default()).unwrap();
    let (before, after) = (model.proto().graph().unwrap(), moved.proto().graph().unwrap());
    assert_eq!(before.node(), after.node());
    assert_eq!(before.sparse_initializer(), after.sparse_initializer());
    assert_eq!(after.encoded_initializer()[0].doc_string(), "an encoded value");
    assert_eq!(after.encoded_initializer()[0].unknown_fields().len(), 10);
    let back = folder.path().join("back.onnx");
    moved.save(&back, &SaveOptions::default().external(heirloom_graph::External::Inline)).unwrap();
    assert!(std::fs::read(back).unwrap() == salted().to_vec(), "out and in again gives the same bytes");
    let _ = DType::Float;
}
