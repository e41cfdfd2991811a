//! Reports.

use std::fs;
use std::time::Instant;

use heirloom_graph::inspect::{ConstantKind, FieldContent, LayoutReport, PlaceReport};
use heirloom_graph::{Model, ModelBuilder, OpenOptions, SaveOptions, inspect};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::ExternalLocation;
use heirloom_testkit::folder::TempFolder;
use heirloom_types::{Affine, StructType, TensorType};

use crate::support::{accumulator, block, open};

fn weights(folder: &TempFolder) -> std::path::PathBuf {
    let mut model = accumulator();
    let g = model.graph();
    let logical = TensorType { dtype: DType::Float, shape: [4096, 4096].into_iter().collect() };
    let place = ExternalLocation::new("w.bin", 4096, 9_437_184).unwrap();
    g.encoded("w", &block(), Some(&logical), place).unwrap();
    let path = folder.write("m.onnx", &model.finish().unwrap().to_bytes());
    fs::File::create(folder.path().join("w.bin")).unwrap().set_len(4096 + 9_437_184).unwrap();
    path
}

#[test]
fn u68_a_report_says_what_is_in_the_file_without_reading_it() {
    let folder = TempFolder::new();
    let path = weights(&folder);
    let start = Instant::now();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let report = inspect(&model);
    let text = report.to_string();
    assert!(start.elapsed().as_millis() < 50, "{:?}", start.elapsed());

    let [constant] = &report.constants[..] else { panic!("{:?}", report.constants) };
    assert_eq!((&*constant.name, constant.logical_type.as_deref()), ("w", Some("FLOAT[4096, 4096]")));
    assert_eq!(constant.payload_bytes, Some(9_437_184));
    let ConstantKind::Encoded(LayoutReport::Struct {
        type_index,
        type_id,
        record_bytes,
        records,
        has_decoder,
        ..
    }) = &constant.kind
    else {
        panic!("{:?}", constant.kind)
    };
    assert_eq!((*type_id, *record_bytes, *records, *has_decoder), (Some(2001), 18, Some(524_288), false));
    let PlaceReport::External { location, file, offset, length } = &constant.place else { panic!() };
    assert_eq!((&**location, *offset, *length), ("w.bin", 4096, Some(9_437_184)));
    assert_eq!(file.as_deref(), Some(&*folder.path().canonicalize().unwrap().join("w.bin")));
    let ty = &report.types[*type_index];
    assert_eq!((&*ty.name, ty.bit_size, ty.values), ("Block", Some(144), 1));
    let places: Vec<_> = ty
        .fields
        .iter()
        .map(|field| match &field.content {
            FieldContent::Stored { element, bits, bit_offset, dims } => {
                (&*field.path, &**element, *bits, *bit_offset, &dims[..])
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, [("scale", "FLOAT16", 16, 0, &[][..]), ("codes", "UINT4", 4, 16, &[(32, 4)][..])]);
    assert_eq!(report.bindings, [("s".to_owned(), "stateN".to_owned())]);
    for part in [
        "w: FLOAT[4096, 4096], type 2001 `Block`, 524,288 records of 18 bytes, decoder none, 9,437,184 bytes in \
         `w.bin` from 4,096 +9,437,184",
        "type id 2001 `Block`: 18 bytes; decoder none",
        "bit      0  scale: FLOAT16",
        "bit     16  codes: UINT4[32]",
        "s <- stateN",
        "s: FLOAT[2], kept from stateN",
        "1 × Add",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn u68_no_page_of_the_payload_is_touched() {
    let folder = TempFolder::new();
    let path = weights(&folder);
    let rss_file = || {
        let status = fs::read_to_string("/proc/self/smaps").unwrap();
        let name = folder.path().canonicalize().unwrap().join("w.bin");
        let mut lines = status.lines().skip_while(|line| !line.contains(name.to_str().unwrap()));
        lines.find(|line| line.starts_with("Rss:")).map(str::to_owned)
    };
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let _ = inspect(&model).to_string();
    assert_eq!(model.verify(), []);
    let resident = rss_file().expect("the payload is mapped");
    assert_eq!(resident.split_whitespace().nth(1), Some("0"), "{resident}");
}

#[test]
fn affine_sparse_and_inline_constants_and_types_without_fixed_size_are_reported() {
    let mut model = ModelBuilder::new("kinds");
    model.opset("", 24).unwrap();
    let cache = StructType::structure("Cache")
        .typed("keys", heirloom_types::ValueType::unranked(DType::Float16))
        .constant("limit", Tensor::scalar(2048i64))
        .type_id(7)
        .build()
        .unwrap();
    model.struct_type(&cache).unwrap();
    let g = model.graph();
    let affine = Affine {
        storage: DType::Int4,
        scale: Tensor::from_vec(&[2, 2], vec![0.5f32; 4]).unwrap(),
        zero_point: None,
        axis: Some(1),
        block_size: Some(16),
    };
    let logical = TensorType { dtype: DType::Float, shape: [2, 32].into_iter().collect() };
    g.affine("a", &affine, &logical, Bytes::from_vec(vec![0u8; 32])).unwrap();
    let sparse = heirloom_graph::SparseTensor {
        values: Tensor::from_vec(&[1], vec![5.0f32]).unwrap(),
        indices: Tensor::from_vec(&[1], vec![1i64]).unwrap(),
        shape: [4].into_iter().collect(),
    };
    g.sparse("p", &sparse).unwrap();
    let inline = StructType::structure("").bits("parts", &[("low", 3), ("high", 5)], 2).build().unwrap();
    g.encoded("i", &inline, None, Bytes::from_vec(vec![0u8; 4])).unwrap();
    let model = open(model.finish().unwrap()).unwrap();
    let report = inspect(&model);
    assert_eq!(report.inline_bytes(), 32 + 12 + 4);
    assert_eq!(report.types.len(), 2);
    let text = report.to_string();
    for part in [
        "a: FLOAT[2, 32], affine INT4, scales FLOAT[2, 2] along axis 1 in blocks of 16, 32 bytes",
        "p: FLOAT[4], sparse, 12 bytes",
        "i: no tensor, type inline, 2 records of 2 bytes, decoder none, 4 bytes",
        "type id 7 `Cache`: no fixed size",
        "keys: FLOAT16[…]",
        "constant    limit: INT64[]",
        "bit      3  parts.high: 5 bits[2]",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn a_report_of_a_saved_model_names_its_file() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    open(accumulator().finish().unwrap()).unwrap().save(&path, &SaveOptions::default()).unwrap();
    let report = inspect(&Model::open(&path, &OpenOptions::default()).unwrap());
    assert_eq!(report.path, Some(path));
    assert_eq!(report.opsets, [("ai.onnx".to_owned(), 24)]);
    assert!(report.producer.starts_with("heirloom "));
}
