//! External payloads: where they may lie, and models without a folder.

use std::fs;

use heirloom_graph::{Error, Initializer, Model, ModelBuilder, OpenOptions, SaveOptions, inspect};
use heirloom_mem::{Bytes, DType};
use heirloom_proto::{ExternalLocation, ModelProto};
use heirloom_testkit::folder::TempFolder;
use heirloom_types::TensorType;

use crate::support::{block, vector};

/// A model with a dense and an encoded constant in `w.bin`.
fn external(offset: u64) -> ModelProto {
    let mut model = ModelBuilder::new("external");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let ty = TensorType { dtype: DType::Float, shape: [2].into_iter().collect() };
    let dense = ExternalLocation::new("w.bin", offset, 8).unwrap();
    let encoded = ExternalLocation::new("w.bin", offset + 8, 18).unwrap();
    let d = g.external_initializer("d", &ty, &dense).unwrap();
    g.encoded("e", &block(), None, encoded).unwrap();
    let y = g.node("Neg").input(&d).output("y").unwrap();
    g.output(&y, &vector(2)).unwrap();
    model.finish().unwrap()
}

/// The same with another location in both.
fn at(location: &str) -> [ModelProto; 2] {
    let set = |entries: &mut Vec<heirloom_proto::StringStringEntryProto>| entries[0].set_value(location);
    let (mut dense, mut encoded) = (external(0), external(0));
    set(dense.graph_mut().initializer_mut()[0].external_data_mut());
    set(encoded.graph_mut().encoded_initializer_mut()[0].external_data_mut());
    [dense, encoded]
}

// proves: E3
#[test]
fn u12_locations_that_leave_the_folder_are_refused_on_load_and_on_save() {
    let folder = TempFolder::new();
    let inside = folder.path().join("in");
    fs::create_dir_all(inside.join("sub")).unwrap();
    let payload: Vec<u8> = (0..64).collect();
    for place in ["w.bin", "in/w.bin", "in/sub/w.bin"] {
        folder.write(place, &payload);
    }
    let absolute = folder.path().join("w.bin");
    for location in [
        "../w.bin",
        "sub/../../w.bin",
        absolute.to_str().unwrap(),
        r"C:\w.bin",
        "C:w.bin",
        "",
        "w.bin\0",
        r"..\w.bin",
    ] {
        for proto in at(location) {
            let opened = Model::from_proto(proto.clone(), Some(&inside), &OpenOptions::default());
            assert!(matches!(opened, Err(Error::Invalid { .. })), "{location:?}");
            let out = inside.join("out.onnx");
            let resolver = heirloom_proto::ExternalResolver::new(&inside).unwrap();
            heirloom_graph::save_proto(&proto, &resolver, &out, &SaveOptions::default()).unwrap_err();
            assert!(!out.exists(), "{location:?}");
        }
    }
    for proto in at("sub/w.bin") {
        Model::from_proto(proto, Some(&inside), &OpenOptions::default()).unwrap();
    }
}

// proves: E3
#[cfg(unix)]
#[test]
fn u12_a_link_that_leads_out_needs_an_external_root() {
    let folder = TempFolder::new();
    let inside = folder.path().join("in");
    fs::create_dir(&inside).unwrap();
    let target = folder.write("cache/blob", &[0; 64]);
    std::os::unix::fs::symlink(&target, inside.join("w.bin")).unwrap();
    let refused =
        Model::from_proto(external(0), Some(&inside), &OpenOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("out of the model's folder"), "{refused}");
    let allowed = OpenOptions::default().external_root(folder.path().join("cache"));
    let model = Model::from_proto(external(0), Some(&inside), &allowed).unwrap();
    assert!(matches!(model.graph().initializers().next(), Some((_, Initializer::Tensor(_)))));
}

// proves: E3
#[test]
fn u42_without_a_base_directory_inspection_works_and_touching_a_payload_says_what_is_needed() {
    let folder = TempFolder::new();
    let good: Vec<u8> = (0..64).collect();
    folder.write("with/w.bin", &good);
    // A decoy in the current directory, which no model may look into.
    folder.write("decoy/w.bin", &[0xff; 64]);
    std::env::set_current_dir(folder.path().join("decoy")).unwrap();
    let bytes = external(8).to_bytes();

    let model = Model::from_bytes(bytes.clone(), None, &OpenOptions::default()).unwrap();
    let report = inspect(&model);
    assert_eq!(report.constants.len(), 2);
    assert_eq!(report.constants[1].payload_bytes, Some(18));
    assert!(report.to_string().contains("in `w.bin` (not at hand) from 16 +18"), "{report}");
    for (value, initializer) in model.graph().initializers() {
        let error = initializer.value().unwrap_err().to_string();
        let name = model.graph().value_name(value);
        assert!(error.contains("base directory") && error.contains(&format!("`{name}`")), "{error}");
    }

    let base = folder.path().join("with");
    let model = Model::from_bytes(bytes, Some(&base), &OpenOptions::default()).unwrap();
    let Some((_, Initializer::Tensor(dense))) = model.graph().initializers().next() else { panic!() };
    assert_eq!(dense.dense_bytes().unwrap(), &good[8..16]);
    let Some((_, Initializer::Encoded(encoded))) = model.graph().initializers().nth(1) else { panic!() };
    assert_eq!(&*encoded.payload, &good[16..34]);
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
}

// proves: E3
#[test]
fn missing_and_short_files_are_refused_unless_a_report_is_all_that_is_wanted() {
    let folder = TempFolder::new();
    let path = folder.write("m.onnx", &external(8).to_bytes());
    let error = Model::open(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("w.bin") && error.contains("graph.initializer[0]"), "{error}");
    let model = Model::open(&path, &OpenOptions::default().allow_missing_files(true)).unwrap();
    assert!(matches!(model.graph().initializers().next(), Some((_, Initializer::Unavailable(_)))));
    folder.write("w.bin", &[0; 33]);
    for allow in [false, true] {
        let options = OpenOptions::default().allow_missing_files(allow);
        let error = Model::open(&path, &options).unwrap_err().to_string();
        assert!(error.contains("has 33"), "{error}");
    }
}

// proves: W5
#[test]
fn payloads_of_one_file_share_its_mapping() {
    let folder = TempFolder::new();
    folder.write("w.bin", &[1; 64]);
    let path = folder.write("m.onnx", &external(3).to_bytes());
    let model = Model::open(&path, &OpenOptions::default()).unwrap();
    let regions: Vec<_> = model
        .graph()
        .initializers()
        .map(|(_, initializer)| match initializer {
            Initializer::Tensor(tensor) => tensor.region_id(),
            Initializer::Encoded(encoded) => encoded.payload.region_id(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(regions[0], regions[1]);
    let Some((_, Initializer::Encoded(encoded))) = model.graph().initializers().nth(1) else { panic!() };
    assert_eq!(
        (encoded.payload.kind(), encoded.payload.region_offset()),
        (heirloom_mem::RegionKind::Mapped, 11)
    );
    let _ = Bytes::empty();
}

// proves: E3
#[cfg(unix)]
#[test]
fn u12_payloads_are_not_written_through_a_link_that_leads_out() {
    let folder = TempFolder::new();
    let inside = folder.path().join("in");
    fs::create_dir(&inside).unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("out"), inside.join("sub")).unwrap();
    folder.write("in/w.bin", &[1; 64]);
    let model = Model::from_proto(external(0), Some(&inside), &OpenOptions::default()).unwrap();
    let file = heirloom_graph::PayloadFile::default().location("sub/moved.bin");
    let options = SaveOptions::default().external(heirloom_graph::External::File(file));
    let error = model.save(inside.join("m.onnx"), &options).unwrap_err().to_string();
    assert!(error.contains("sub/moved.bin"), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
    assert!(!inside.join("m.onnx").exists());
}
