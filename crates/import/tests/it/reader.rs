//! What the reader gives for a good file.

use heirloom_import::gguf::{Storage, Value, ValueType};
use heirloom_mem::DType;

use crate::build::{File, sample};

#[test]
fn every_value_type_is_read() {
    let file = sample().read().unwrap();
    assert_eq!(file.version(), 3);
    let expected = [
        ("a.u8", Value::Unsigned(200)),
        ("a.i8", Value::Signed(-56)),
        ("a.u16", Value::Unsigned(40_000)),
        ("a.i16", Value::Signed(-3)),
        ("a.u32", Value::Unsigned(4_000_000_000)),
        ("a.i32", Value::Signed(-5)),
        ("a.f32", Value::Float(0.5)),
        ("a.bool", Value::Bool(true)),
        ("a.u64", Value::Unsigned(u64::MAX)),
        ("a.i64", Value::Signed(i64::MIN)),
        ("a.f64", Value::Float(0.25)),
        ("general.name", Value::String(b"sample")),
    ];
    for (key, value) in expected {
        assert_eq!(file.value(key), Some(value), "{key}");
    }
    let strings = file.array("a.strings", ValueType::String, "the test").unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), [Value::String(b"ab"), Value::String(b"")]);
    let numbers = file.array("a.numbers", ValueType::I32, "the test").unwrap();
    assert_eq!(numbers.iter().filter_map(Value::as_i64).collect::<Vec<_>>(), [1, -2, 3]);
    assert_eq!(file.keys().count(), 14);
    assert_eq!(file.value("a.missing"), None);
}

#[test]
fn tensors_are_slices_of_the_file_with_shapes_in_onnx_order() {
    let file = sample().read().unwrap();
    let floats = file.tensor("floats").unwrap();
    assert_eq!((floats.dims(), floats.shape().collect::<Vec<_>>()), (&[3, 2][..], vec![2, 3]));
    assert!(matches!(floats.kind().storage, Storage::Dense(DType::Float)));
    assert_eq!(file.data(floats).cast::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let blocks = file.tensor("blocks").unwrap();
    assert!(matches!(blocks.kind().storage, Storage::Blocks(format) if format.name == "q8_0"));
    assert_eq!(file.data(blocks).to_vec(), (0..68).collect::<Vec<u8>>());
    assert_eq!(file.data(blocks).region_id(), file.data(floats).region_id());
    assert_eq!(file.tensor("one").unwrap().shape().len(), 0);
    assert_eq!(file.tensors().len(), 3);
    assert!(file.tensor("none").is_none());
}

#[test]
fn version_2_reads_as_version_3_does() {
    let file = sample().version(2).read().unwrap();
    assert_eq!((file.version(), file.tensors().len()), (2, 3));
}

#[test]
fn typed_access_names_the_key_the_type_and_the_reader() {
    let file = sample().read().unwrap();
    assert_eq!(file.unsigned("a.u8", "the test").unwrap(), 200);
    assert_eq!(file.text("general.name", "the test").unwrap(), "sample");
    assert_eq!(
        file.unsigned("b.count", "architecture `llama`").unwrap_err().to_string(),
        "`model.gguf` has no metadata `b.count`, which architecture `llama` needs"
    );
    assert_eq!(
        file.unsigned("a.i8", "the test").unwrap_err().to_string(),
        "`model.gguf`: metadata `a.i8` is -56; expected a non-negative integer"
    );
    assert_eq!(
        file.array("a.numbers", ValueType::String, "the test").unwrap_err().to_string(),
        "`model.gguf`: metadata `a.numbers` is an array of 3 i32; expected an array of string"
    );
}

#[test]
fn the_alignment_of_the_file_holds() {
    let file = File::new().unsigned("general.alignment", 64).describe("t", &[1], 25, 0);
    // The header ends at 96 bytes: data begins at 128 instead.
    let mut bytes = file.bytes();
    bytes.resize(128, 0);
    bytes.extend([1, 2]);
    let file = crate::build::read(bytes).unwrap();
    assert_eq!(file.tensor("t").unwrap().range(), 128..130);
}
