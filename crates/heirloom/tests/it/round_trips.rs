//! Every kind of value in a file of its own: through our reader, Python's `onnx` package, and back.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use heirloom::formats::{Shaped, by_name, codebook::Codebook, mixed_bits::MixedBits};
use heirloom::graph::{Initializer, ModelBuilder, OpenOptions, SaveOptions};
use heirloom::mem::{Bytes, DType, Tensor};
use heirloom::types::{
    Affine, Dim, DimBindings, EncodedValue, StructType, StructValue, TensorType, Value, ValueType,
};
use heirloom::{Engine, EngineOptions, Model};
use heirloom_testkit::folder::TempFolder;

use crate::values::{Random, elements};

/// The interpreter that `HEIRLOOM_PYTHON` names, or the one in the repository's `.venv`.
fn python() -> PathBuf {
    match std::env::var_os("HEIRLOOM_PYTHON") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

/// Has the `onnx` package load `path` and save it as `back`; false where there is no such package.
fn through_onnx(path: &Path, back: &Path) -> bool {
    let probe = Command::new(python()).args(["-c", "import onnx"]).output();
    if !probe.as_ref().is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("HEIRLOOM_PYTHON").is_none(), "HEIRLOOM_PYTHON has no `onnx`: {probe:?}");
        eprintln!("skipped: no `onnx` package at `{}` (set HEIRLOOM_PYTHON)", python().display());
        return false;
    }
    let script = "import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])";
    let output = Command::new(python()).args(["-c", script]).args([path, back]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Saves the model, opens it, sends it through the `onnx` package and opens that; each is the same message. `check` looks
/// at each model that was opened.
fn round_trip(model: ModelBuilder, check: impl Fn(&Model)) {
    let folder = TempFolder::new();
    let (first, second) = (folder.path().join("first.onnx"), folder.path().join("second.onnx"));
    let built = model.build(None::<&Path>).unwrap();
    check(&built);
    built.save(&first, &SaveOptions::default()).unwrap();
    let opened = Model::open(&first, &OpenOptions::default()).unwrap();
    assert_eq!(opened.verify(), []);
    assert_eq!(opened.proto(), built.proto());
    check(&opened);
    opened.save(&second, &SaveOptions::default()).unwrap();
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
    let back = folder.path().join("back.onnx");
    if through_onnx(&first, &back) {
        let returned = Model::open(&back, &OpenOptions::default()).unwrap();
        assert_eq!(returned.verify(), []);
        assert_eq!(returned.proto(), built.proto());
        check(&returned);
    }
}

fn begin() -> ModelBuilder {
    let mut model = ModelBuilder::new("round trip");
    model.opset("", 24).unwrap();
    model
}

fn encoded(model: &Model, name: &str) -> Arc<EncodedValue> {
    let graph = model.graph();
    let value = graph.value(name).unwrap();
    let Some(Initializer::Encoded(encoded)) = graph.initializer(value) else {
        panic!("`{name}` is not encoded")
    };
    encoded.clone()
}

fn decoded(value: &Arc<EncodedValue>) -> Vec<f32> {
    elements(&Engine::new(EngineOptions { threads: Some(1) }).unwrap().decode(value).unwrap().0)
}

/// A model that passes the encoded constant `w` of `ty` on.
fn constant(ty: &Arc<StructType>, shape: &[usize], records: Vec<u8>) -> ModelBuilder {
    let mut model = begin();
    let g = model.graph();
    let logical = TensorType { dtype: DType::Float, shape: shape.iter().copied().collect() };
    let w = g.encoded("w", ty, Some(&logical), Bytes::from_vec(records)).unwrap();
    let y = g.node("Identity").input(&w).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, shape)).unwrap();
    model
}

// proves: W2, W3, S1, S2
#[test]
fn structs_of_tensor_and_sequence_fields_make_the_round_trip() {
    let page = StructType::structure("Page")
        .type_id(70_001)
        .typed(
            "keys",
            ValueType::symbolic(DType::Float16, [Dim::from(2), Dim::from("tokens"), Dim::from(64)]),
        )
        .field("first", DType::Int64)
        .build()
        .unwrap();
    let cache = StructType::structure("Cache")
        .type_id(70_002)
        .typed("pages", ValueType::sequence(ValueType::Struct(page.clone())))
        .typed("names", ValueType::map(DType::Int64, ValueType::tensor(DType::Float, &[3])))
        .typed("last", ValueType::optional(ValueType::Struct(page.clone())))
        .field("length", DType::Int64)
        .build()
        .unwrap();
    assert_eq!((page.bit_size(), cache.bit_size()), (None, None));
    let ty = ValueType::Struct(cache.clone());
    let mut model = begin();
    let g = model.graph();
    let past = g.input("cache", &ty).unwrap();
    let next = g.node("Identity").input(&past).output("next").unwrap();
    g.output(&next, &ty).unwrap();
    g.bind(&past, &next).unwrap();
    round_trip(model, |model| {
        let graph = model.graph();
        let declared = graph.value_type(graph.value("cache").unwrap()).unwrap();
        assert_eq!(declared, &ty);
        assert_eq!(model.catalogue().len(), 2);
        assert_eq!(graph.bindings().len(), 1);
    });
}

// proves: W2, W3, O2
#[test]
fn byte_encoded_records_make_the_round_trip() {
    for name in ["q4_0", "q6_k", "mxfp4"] {
        let format = by_name(name).unwrap();
        let records = Random(3).bytes(3 * format.record_bytes);
        let expected = std::cell::OnceCell::new();
        round_trip(constant(format.declaration(), &[3, format.elements], records.clone()), |model| {
            let value = encoded(model, "w");
            assert_eq!(value.payload[..], records[..]);
            assert_eq!(value.record_count(), Some(3));
            let bits: Vec<u32> = decoded(&value).into_iter().map(f32::to_bits).collect();
            assert_eq!(expected.get_or_init(|| bits.clone()), &bits);
        });
    }
}

// proves: W2, C4
#[test]
fn codebooks_make_the_round_trip() {
    let format = Codebook::new(32, &[-1.0, -0.25, 0.25, 1.0], true).unwrap();
    let record = [&[0xE4u8; 8][..], &2f32.to_le_bytes()].concat();
    for id in [None, Some(std::num::NonZeroU64::new(70_003).unwrap())] {
        round_trip(constant(&format.declaration(id), &[32], record.clone()), |model| {
            assert_eq!(decoded(&encoded(model, "w")), [-2.0, -0.5, 0.5, 2.0].repeat(8));
            assert_eq!(model.catalogue().len(), usize::from(id.is_some()));
        });
    }
}

// proves: W2
#[test]
fn mixed_bit_blocks_make_the_round_trip() {
    let format = MixedBits::new(8, &[2, 4]).unwrap();
    let record = [0xE4, 0xE4, 0x00, 0x38, 0x10, 0x32, 0x54, 0x76, 0x00, 0x40];
    let expected =
        [-1.0, -0.5, 0.0, 0.5, -1.0, -0.5, 0.0, 0.5, -16.0, -14.0, -12.0, -10.0, -8.0, -6.0, -4.0, -2.0];
    round_trip(constant(&format.declaration(None), &[16], record.to_vec()), |model| {
        assert_eq!(decoded(&encoded(model, "w")), expected);
    });
}

// proves: W2, S4
#[test]
fn a_sequence_of_blocks_in_different_layouts_makes_the_round_trip() {
    let block = |id: u64, name: &str, k: ValueType, v: ValueType| {
        StructType::structure(name).type_id(id).typed("k", k).typed("v", v).build().unwrap()
    };
    let dense = ValueType::tensor(DType::Float16, &[2, 16, 64]);
    let q8 = ValueType::Struct(by_name("q8_0").unwrap().declaration().clone());
    let q4 = ValueType::Struct(by_name("q4_0").unwrap().declaration().clone());
    let kinds = [
        block(70_010, "DenseBlock", dense.clone(), dense.clone()),
        block(70_011, "Int8Block", q8.clone(), q8.clone()),
        block(70_012, "MixedBlock", q8, q4),
    ];
    let cache = StructType::structure("KVCache")
        .type_id(70_013)
        .typed("blocks", ValueType::sequence(ValueType::AnyStruct))
        .field("length", DType::Int64)
        .build()
        .unwrap();
    let ty = ValueType::Struct(cache);
    let mut model = begin();
    for kind in &kinds {
        model.struct_type(kind).unwrap();
    }
    let g = model.graph();
    let past = g.input("cache", &ty).unwrap();
    let next = g.node("Identity").input(&past).output("next").unwrap();
    g.output(&next, &ty).unwrap();
    g.bind(&past, &next).unwrap();
    // Keys of one block, 2 x 16 x 64 elements, in four layouts.
    let logical = TensorType { dtype: DType::Float, shape: [2, 16, 64].into_iter().collect() };
    let codebook = Codebook::new(32, &[-1.0, -0.25, 0.25, 1.0], true).unwrap().declaration(None);
    let affine = Affine {
        storage: DType::Int8,
        scale: Tensor::scalar(0.25f32),
        zero_point: None,
        axis: None,
        block_size: None,
    };
    let payload = |bytes: usize, byte: u8| Bytes::from_vec(vec![byte; bytes]);
    g.affine("int8", &affine, &logical, payload(2048, 0x84)).unwrap();
    g.encoded("q8", by_name("q8_0").unwrap().declaration(), Some(&logical), payload(64 * 34, 0x3c)).unwrap();
    g.encoded("q4", by_name("q4_0").unwrap().declaration(), Some(&logical), payload(64 * 18, 0x3c)).unwrap();
    let two = [&[0xE4u8; 8][..], &2f32.to_le_bytes()].concat().repeat(64);
    g.encoded("codebook", &codebook, Some(&logical), Bytes::from_vec(two)).unwrap();
    let keys = [
        ("int8", 2048, [-31.0, -31.0]),
        ("q8", 2176, [63.515625, 63.515625]),
        ("q4", 1152, [4.234375, 4.234375]),
        ("codebook", 768, [-2.0, -0.5]),
    ];
    round_trip(model, |model| {
        let graph = model.graph();
        assert_eq!(graph.value_type(graph.value("cache").unwrap()), Some(&ty));
        for kind in &kinds {
            let id = kind.type_id().unwrap().get();
            assert_eq!(model.catalogue().get(id).unwrap().difference(kind), None);
        }
        let blocks = keys.map(|(name, bytes, first)| {
            let key = encoded(model, name);
            assert_eq!(key.payload.len(), bytes, "{name}");
            assert_eq!(decoded(&key)[..2], first, "{name}");
            // The value beside it in full precision: a block mixes layouts too.
            let dense = Tensor::from_vec(&[2, 16, 64], vec![half::f16::ONE; 2048]).unwrap();
            let fields = [("k", Value::Encoded(key)), ("v", Value::Tensor(dense))];
            Value::Struct(
                StructValue { fields: fields.map(|(name, value)| (name.into(), value)).into() }.into(),
            )
        });
        let fields =
            [("blocks", Value::Sequence(Vec::from(blocks).into())), ("length", Tensor::scalar(64i64).into())];
        let cache = Value::Struct(
            StructValue { fields: fields.map(|(name, value)| (name.into(), value)).into() }.into(),
        );
        ty.check(&cache, "cache", &mut DimBindings::new()).unwrap();
    });
}

// proves: W2, A3
#[test]
fn affine_values_make_the_round_trip() {
    let affine = Affine {
        storage: DType::Uint4,
        scale: Tensor::from_vec(&[2, 2], vec![1f32, 2.0, 0.5, 4.0]).unwrap(),
        zero_point: Some(Tensor::new(DType::Uint4, &[2, 2], Bytes::from_vec(vec![0x21u8, 0x43])).unwrap()),
        axis: Some(1),
        block_size: Some(2),
    };
    let logical = TensorType { dtype: DType::Float, shape: [2, 4].into_iter().collect() };
    let mut model = begin();
    let g = model.graph();
    let w = g.affine("w", &affine, &logical, Bytes::from_vec(vec![0x77u8; 4])).unwrap();
    let y = g.node("Identity").input(&w).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[2, 4])).unwrap();
    round_trip(model, |model| {
        assert_eq!(decoded(&encoded(model, "w")), [6.0, 6.0, 10.0, 10.0, 2.0, 2.0, 12.0, 12.0]);
    });
}
