//! Saving: alignment, sharing, limits; nothing is overwritten that is still needed.

use std::fs;

use heirloom_graph::{
    Error, External, Initializer, Model, ModelBuilder, OpenOptions, PayloadFile, SaveOptions,
};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_proto::{ExternalLocation, Payload};
use heirloom_testkit::folder::TempFolder;

use crate::support::{accumulator, anonymous_bytes, block, open};

fn place(model: &Model, index: usize) -> ExternalLocation {
    match model.proto().graph().unwrap().initializer()[index].payload().unwrap() {
        Payload::External(place) => place,
        other => panic!("{other:?}"),
    }
}

fn model_with_payloads() -> Model {
    let mut model = accumulator();
    let g = model.graph();
    let large = Tensor::from_vec(&[16384], (0..16384).map(|i| i as f32).collect()).unwrap();
    g.initializer("medium", &Tensor::from_vec(&[300], vec![1f32; 300]).unwrap()).unwrap();
    g.initializer("large", &large).unwrap();
    g.initializer("tied", &large).unwrap();
    g.initializer("tiny", &Tensor::scalar(7f32)).unwrap();
    g.encoded("records", &block(), None, Bytes::from_vec(vec![9u8; 18 * 64])).unwrap();
    open(model.finish().unwrap()).unwrap()
}

// proves: GB1
#[test]
fn payloads_written_out_are_aligned_shared_and_used_in_place() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    let options = SaveOptions::default().external(External::File(PayloadFile::default()));
    model_with_payloads().save(&path, &options).unwrap();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let extents: Vec<_> = (0..3).map(|index| place(&model, index)).collect();
    let shown: Vec<_> = extents.iter().map(|it| (&*it.location, it.offset, it.length)).collect();
    // 1,200 bytes at a multiple of 64, 65,536 at a multiple of 65,536, and tied weights once.
    assert_eq!(
        shown,
        [
            ("m.onnx.data", 0, Some(1200)),
            ("m.onnx.data", 65536, Some(65536)),
            ("m.onnx.data", 65536, Some(65536)),
        ]
    );
    let records = model.proto().graph().unwrap().encoded_initializer()[0].payload().unwrap();
    assert!(matches!(records, Payload::External(it) if it.offset == 131072 && it.length == Some(1152)));
    assert!(matches!(model.proto().graph().unwrap().initializer()[3].payload(), Ok(Payload::Raw(_))));
    assert_eq!(fs::metadata(folder.path().join("m.onnx.data")).unwrap().len(), 131072 + 1152);
    let graph = model.graph();
    let Some(Initializer::Tensor(large)) = graph.initializer(graph.value("large").unwrap()) else { panic!() };
    assert_eq!(large.address() % 4096, 0);
    assert_eq!(large.as_slice::<f32>().unwrap()[16383], 16383.0);
    assert_eq!(model.verify(), []);
}

#[test]
fn alignment_threshold_and_name_can_be_chosen() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    let file = PayloadFile::default().location("weights.bin").alignment(4096, 1).threshold(1);
    model_with_payloads().save(&path, &SaveOptions::default().external(External::File(file))).unwrap();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let offsets: Vec<_> = (0..4).map(|index| place(&model, index).offset).collect();
    assert_eq!(offsets, [0, 4096, 4096, 4096 + 65536]);
    assert_eq!(place(&model, 0).location, "weights.bin");
    // A location that leaves the folder is refused before anything is written.
    let file = PayloadFile::default().location("../weights.bin");
    let other = folder.path().join("other.onnx");
    model.save(&other, &SaveOptions::default().external(External::File(file))).unwrap_err();
    assert!(!other.exists() && !folder.path().parent().unwrap().join("weights.bin").exists());
}

#[test]
fn a_file_of_payloads_can_be_replaced_while_it_is_mapped() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    let options = SaveOptions::default().external(External::File(PayloadFile::default()));
    model_with_payloads().save(&path, &options).unwrap();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let before = fs::read(folder.path().join("m.onnx.data")).unwrap();
    model.save(&path, &options).unwrap();
    assert_eq!(fs::read(folder.path().join("m.onnx.data")).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "temporary files are left behind");
    Model::open(&path, &OpenOptions::default()).unwrap();
}

#[test]
fn kept_payloads_must_be_reachable_from_the_new_folder_and_never_overwritten() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    model_with_payloads()
        .save(&path, &SaveOptions::default().external(External::File(PayloadFile::default())))
        .unwrap();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let elsewhere = folder.path().join("sub");
    fs::create_dir(&elsewhere).unwrap();
    let error = model.save(elsewhere.join("m.onnx"), &SaveOptions::default()).unwrap_err();
    assert!(
        matches!(&error, Error::ExternalElsewhere { location, .. } if location == "m.onnx.data"),
        "{error}"
    );
    let error = model.save(folder.path().join("m.onnx.data"), &SaveOptions::default()).unwrap_err();
    assert!(error.to_string().contains("overwrite its own payloads"), "{error}");
    // Moved along, or taken in, they can go anywhere.
    for external in [External::Inline, External::File(PayloadFile::default())] {
        model.save(elsewhere.join("m.onnx"), &SaveOptions::default().external(external)).unwrap();
        let moved = Model::open(elsewhere.join("m.onnx"), &OpenOptions::default()).unwrap();
        let graph = moved.graph();
        let Some(Initializer::Tensor(large)) = graph.initializer(graph.value("large").unwrap()) else {
            panic!()
        };
        assert_eq!(large.dense_bytes().unwrap()[4..8], 1f32.to_le_bytes());
    }
}

#[test]
fn payloads_that_are_not_at_hand_cannot_be_taken_in() {
    let folder = TempFolder::new();
    let path = folder.path().join("m.onnx");
    model_with_payloads()
        .save(&path, &SaveOptions::default().external(External::File(PayloadFile::default())))
        .unwrap();
    let model = Model::from_bytes(Bytes::map_file(&path).unwrap(), None, &OpenOptions::default()).unwrap();
    let out = folder.path().join("out.onnx");
    let error = model.save(&out, &SaveOptions::default().external(External::Inline)).unwrap_err().to_string();
    assert!(error.contains("base directory"), "{error}");
    assert!(!out.exists());
}

/// A model beside a file of 3 GiB that takes no room on the disk.
fn huge(folder: &TempFolder) -> std::path::PathBuf {
    let bytes: u64 = 3 << 30;
    let file = fs::File::create(folder.path().join("huge.bin")).unwrap();
    file.set_len(bytes).unwrap();
    let mut model = ModelBuilder::new("huge");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let ty = heirloom_types::TensorType { dtype: DType::Uint8, shape: [3 << 30].into_iter().collect() };
    let place = ExternalLocation::new("huge.bin", 0, bytes).unwrap();
    let w = g.external_initializer("w", &ty, &place).unwrap();
    let y = g.node("Identity").input(&w).output("y").unwrap();
    g.output(&y, &heirloom_types::ValueType::tensor(DType::Uint8, &[3 << 30])).unwrap();
    let path = folder.path().join("huge.onnx");
    open(model.finish().unwrap()).unwrap().save(&path, &SaveOptions::default()).unwrap();
    path
}

// proves: GB1
#[test]
fn u5_a_rename_beside_three_gib_rewrites_kilobytes() {
    let folder = TempFolder::new();
    let path = huge(&folder);
    let written = fs::metadata(folder.path().join("huge.bin")).unwrap().modified().unwrap();
    let before = anonymous_bytes();
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(model.verify(), []);
    let mut edit = model.edit();
    edit.rename("y", "result").unwrap();
    let renamed = edit.finish().unwrap();
    let out = folder.path().join("renamed.onnx");
    renamed.save(&out, &SaveOptions::default()).unwrap();
    let grown = anonymous_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes of anonymous memory");
    assert!(fs::metadata(&out).unwrap().len() < 4096);
    let file = fs::metadata(folder.path().join("huge.bin")).unwrap();
    assert_eq!((file.modified().unwrap(), file.len()), (written, 3 << 30));
    let again = Model::open(&out, &OpenOptions::default()).unwrap();
    let graph = again.graph();
    assert!(graph.value("result").is_some() && graph.value("y").is_none());
    let Some(Initializer::Tensor(w)) = graph.initializer(graph.value("w").unwrap()) else { panic!() };
    assert_eq!(w.len(), 3 << 30);
}

// proves: GB1
#[test]
fn u5_inline_payloads_beyond_two_gib_are_refused_before_a_byte_is_written() {
    let folder = TempFolder::new();
    let model = Model::open(huge(&folder), &OpenOptions::default()).unwrap();
    let out = folder.path().join("inline.onnx");
    let error = model.save(&out, &SaveOptions::default().external(External::Inline)).unwrap_err().to_string();
    assert!(error.contains("external data") && error.contains("allow_over_2gib"), "{error}");
    assert!(!out.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
