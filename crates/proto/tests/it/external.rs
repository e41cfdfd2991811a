//! External payloads: where they may lie and how they are found.

use std::path::Path;

use heirloom_mem::Bytes;
use heirloom_proto::external::{LocationFault, PayloadFault};
use heirloom_proto::tensor_proto::DataLocation;
use heirloom_proto::{
    EncodedValueProto, Error, ExternalError, ExternalLocation, ExternalResolver, ModelProto, Payload,
    SaveOptions, TensorProto, load, save,
};

use crate::files::Folder;
use crate::model::{encoded, entry};

fn external_tensor(location: &str, more: &[(&str, &str)]) -> TensorProto {
    let mut tensor = TensorProto::new();
    tensor.set_name("weight");
    tensor.external_data_mut().push(entry("location", location));
    tensor.external_data_mut().extend(more.iter().map(|(key, value)| entry(key, value)));
    tensor.set_data_location(DataLocation::EXTERNAL);
    tensor
}

fn external_value(location: &str) -> EncodedValueProto {
    let mut value = encoded("weight");
    value.clear_raw_data();
    value.external_data_mut().extend([entry("location", location), entry("length", "4")]);
    value.set_data_location(DataLocation::EXTERNAL);
    value
}

fn model_of(tensor: Option<TensorProto>, value: Option<EncodedValueProto>) -> ModelProto {
    let mut model = ModelProto::new();
    model.graph_mut().initializer_mut().extend(tensor);
    model.graph_mut().encoded_initializer_mut().extend(value);
    model
}

// proves: E3
#[test]
fn u12_a_location_that_leaves_the_folder_is_refused_on_load_and_on_save_before_any_open() {
    let folder = Folder::new();
    let inner = folder.path("model");
    std::fs::create_dir_all(inner.join("sub")).unwrap();
    for name in ["w.bin", "model/w.bin", "model/sub/w.bin"] {
        std::fs::write(folder.path(name), b"data").unwrap();
    }
    let absolute = folder.path("w.bin").to_string_lossy().into_owned();
    let cases = [
        ("../w.bin", LocationFault::Parent),
        ("sub/../../w.bin", LocationFault::Parent),
        ("..\\w.bin", LocationFault::Parent),
        (&absolute, LocationFault::Absolute),
        ("\\\\server\\w.bin", LocationFault::Absolute),
        ("C:\\w.bin", LocationFault::Drive),
        ("c:w.bin", LocationFault::Drive),
        ("", LocationFault::Empty),
        ("w.bin\0.txt", LocationFault::Nul),
    ];
    let path = inner.join("model.onnx");
    for (location, expected) in cases {
        let tensor = model_of(Some(external_tensor(location, &[("length", "4")])), None);
        let value = model_of(None, Some(external_value(location)));
        let mut in_attribute = ModelProto::new();
        let mut node = crate::model::node("Constant", &[], &["c"]);
        let mut attribute = heirloom_proto::AttributeProto::new();
        attribute.set_t(external_tensor(location, &[]));
        node.attribute_mut().push(attribute);
        let mut function = heirloom_proto::FunctionProto::new();
        function.node_mut().push(node);
        in_attribute.functions_mut().push(function);
        for model in [tensor, value, in_attribute] {
            std::fs::write(&path, &*model.to_bytes()).unwrap();
            let outcomes =
                [load(&path).map(drop), save(&model, &inner.join("out.onnx"), &SaveOptions::default())];
            for outcome in outcomes {
                let Err(Error::External { name, source: ExternalError::BadLocation { fault, .. } }) = outcome
                else {
                    panic!("{location:?} was not refused: {outcome:?}")
                };
                assert_eq!((name.as_str(), fault), ("weight", expected), "{location:?}");
            }
            assert!(!inner.join("out.onnx").exists());
        }
    }
    let good = model_of(Some(external_tensor("sub/w.bin", &[])), Some(external_value("sub/w.bin")));
    save(&good, &path, &SaveOptions::default()).unwrap();
    let model = load(&path).unwrap();
    let resolver = ExternalResolver::for_model(&path).unwrap();
    let graph = model.graph().unwrap();
    let tensor = graph.initializer()[0].payload_bytes(&resolver).unwrap().unwrap();
    let value = graph.encoded_initializer()[0].payload_bytes(&resolver).unwrap();
    assert_eq!((&*tensor, &*value), (&b"data"[..], &b"data"[..]));
    // One mapping for both.
    assert_eq!((tensor.region_id(), tensor.address()), (value.region_id(), value.address()));
}

// proves: E3
#[cfg(unix)]
#[test]
fn u12_a_symlink_that_leads_out_needs_an_allowed_root() {
    let folder = Folder::new();
    let (inner, blobs) = (folder.path("model"), folder.path("blobs"));
    std::fs::create_dir_all(inner.join("sub")).unwrap();
    std::fs::create_dir_all(&blobs).unwrap();
    std::fs::write(blobs.join("abc"), b"data").unwrap();
    std::fs::write(inner.join("here.bin"), b"here").unwrap();
    std::os::unix::fs::symlink(blobs.join("abc"), inner.join("w.bin")).unwrap();
    std::os::unix::fs::symlink("../here.bin", inner.join("sub/inside.bin")).unwrap();
    std::os::unix::fs::symlink(&blobs, inner.join("folder")).unwrap();
    std::fs::hard_link(blobs.join("abc"), inner.join("hard.bin")).unwrap();
    let resolver = ExternalResolver::new(&inner).unwrap();
    for location in ["w.bin", "folder/abc"] {
        let error = external_tensor(location, &[]).payload_bytes(&resolver).unwrap_err();
        assert!(
            matches!(&error, ExternalError::LeadsOut { target, .. } if target.ends_with("blobs/abc")),
            "{error}"
        );
    }
    let bytes = |location: &str, resolver: &ExternalResolver| {
        external_tensor(location, &[]).payload_bytes(resolver).unwrap().unwrap()
    };
    assert_eq!(&*bytes("sub/inside.bin", &resolver), b"here");
    assert_eq!(&*bytes("hard.bin", &resolver), b"data");
    let resolver = resolver.with_external_root(&blobs).unwrap();
    assert_eq!(&*bytes("w.bin", &resolver), b"data");
    assert_eq!(bytes("w.bin", &resolver).region_id(), bytes("folder/abc", &resolver).region_id());
    // A model cache: the model itself is a link, its folder is where the link lies.
    std::fs::write(blobs.join("model"), b"").unwrap();
    std::os::unix::fs::symlink(blobs.join("model"), inner.join("model.onnx")).unwrap();
    let resolver = ExternalResolver::for_model(&inner.join("model.onnx")).unwrap();
    assert_eq!(resolver.base_dir().unwrap(), inner.canonicalize().unwrap());
}

// proves: E3
#[test]
fn u42_a_model_given_as_bytes_needs_a_base_directory_and_never_looks_in_the_current_one() {
    let model = model_of(Some(external_tensor("Cargo.toml", &[])), Some(external_value("Cargo.toml")));
    // Tests run in the crate's folder: the decoy is there.
    assert!(Path::new("Cargo.toml").exists());
    let model = ModelProto::decode(Bytes::from_vec(model.to_bytes().to_vec())).unwrap();
    let graph = model.graph().unwrap();
    assert_eq!(graph.initializer()[0].name(), "weight");
    let without = ExternalResolver::without_base_dir();
    for error in [
        graph.initializer()[0].payload_bytes(&without).unwrap_err(),
        graph.encoded_initializer()[0].payload_bytes(&without).unwrap_err(),
    ] {
        assert!(matches!(error, ExternalError::NoBaseDirectory { .. }), "{error}");
        assert!(error.to_string().contains("needs a base directory"), "{error}");
    }
    let folder = Folder::new();
    std::fs::write(folder.path("Cargo.toml"), b"mine").unwrap();
    let resolver = ExternalResolver::new(folder.root()).unwrap();
    assert_eq!(&*graph.encoded_initializer()[0].payload_bytes(&resolver).unwrap(), b"mine");
}

// proves: E3
#[test]
fn an_extent_must_lie_in_the_file() {
    let folder = Folder::new();
    std::fs::write(folder.path("w.bin"), b"0123456789").unwrap();
    let resolver = ExternalResolver::new(folder.root()).unwrap();
    let resolve =
        |more: &[(&str, &str)]| external_tensor("w.bin", more).payload_bytes(&resolver).map(Option::unwrap);
    assert_eq!(&*resolve(&[("offset", "2"), ("length", "3")]).unwrap(), b"234");
    assert_eq!(&*resolve(&[("offset", "8")]).unwrap(), b"89");
    assert_eq!(resolve(&[("offset", "10")]).unwrap().len(), 0);
    assert_eq!(resolve(&[("offset", "10"), ("length", "0")]).unwrap().len(), 0);
    for more in [&[("offset", "8"), ("length", "3")][..], &[("offset", "11")], &[("length", "11")]] {
        let error = resolve(more).unwrap_err();
        assert!(matches!(error, ExternalError::OutOfFile { file_length: 10, .. }), "{more:?}: {error}");
    }
    let missing = external_tensor("missing.bin", &[]).payload_bytes(&resolver).unwrap_err();
    assert!(matches!(missing, ExternalError::Open { .. }), "{missing}");
    std::fs::create_dir(folder.path("dir")).unwrap();
    let directory = external_tensor("dir", &[]).payload_bytes(&resolver).unwrap_err();
    assert!(matches!(directory, ExternalError::Map(_)), "{directory}");
}

// proves: E3
#[test]
fn external_entries_are_checked_when_they_are_parsed() {
    let parse = |more: &[(&str, &str)]| {
        ExternalLocation::parse(external_tensor("w.bin", more).external_data())
            .map_err(|error| error.to_string())
    };
    let place =
        parse(&[("offset", "4096"), ("length", "8"), ("checksum", "abc"), ("later", "kept")]).unwrap();
    assert_eq!((place.offset, place.length, place.checksum.as_deref()), (4096, Some(8), Some("abc")));
    assert_eq!(ExternalLocation::parse(&place.to_entries()).unwrap(), place);
    let refused = [
        (&[("location", "w.bin")][..], "the key `location` occurs twice; keep one"),
        (&[("later", "a"), ("later", "b")], "the key `later` occurs twice; keep one"),
        (&[("offset", "-1")], "`offset` is `-1`, which is no number of bytes"),
        (&[("offset", "+1")], "`offset` is `+1`, which is no number of bytes"),
        (&[("length", "")], "`length` is ``, which is no number of bytes"),
        (
            &[("length", "99999999999999999999")],
            "`length` is `99999999999999999999`, which is no number of bytes",
        ),
        (
            &[("offset", "18446744073709551615"), ("length", "1")],
            "offset 18446744073709551615 and length 1 are more than any file holds",
        ),
    ];
    for (more, message) in refused {
        assert_eq!(parse(more).unwrap_err(), message);
    }
    assert!(matches!(ExternalLocation::parse(&[]), Err(ExternalError::NoLocation)));
}

// proves: E3
#[test]
fn a_value_says_in_one_way_only_where_its_payload_is() {
    let fault = |outcome: Result<Payload<'_>, ExternalError>| match outcome {
        Err(ExternalError::Contradiction { fault }) => fault,
        other => panic!("{other:?}"),
    };
    let mut both = external_tensor("w.bin", &[]);
    both.set_raw_data(Bytes::empty());
    assert_eq!(fault(both.payload()), PayloadFault::Both);
    let mut lists = external_tensor("w.bin", &[]);
    lists.float_data_mut().push(1.0);
    assert_eq!(fault(lists.payload()), PayloadFault::Both);
    let mut undeclared = external_tensor("w.bin", &[]);
    undeclared.clear_data_location();
    assert_eq!(fault(undeclared.payload()), PayloadFault::NotDeclared);
    let mut odd = TensorProto::new();
    odd.set_data_location(DataLocation(7));
    assert_eq!(fault(odd.payload()), PayloadFault::UnknownLocation(7));
    assert_eq!(TensorProto::new().payload().unwrap(), Payload::Empty);

    let mut value = external_value("w.bin");
    assert!(matches!(value.payload(), Ok(Payload::External(_))));
    value.external_data_mut().pop();
    assert!(matches!(value.payload(), Err(ExternalError::NoLength)));
    value.set_raw_data(Bytes::empty());
    assert_eq!(fault(value.payload()), PayloadFault::Both);
    let mut empty = encoded("e");
    empty.clear_raw_data();
    assert_eq!(empty.payload().unwrap(), Payload::Empty);
}

#[test]
fn a_payload_can_be_moved_to_a_file_by_name() {
    let mut tensor = crate::model::tensor("t", &[4], vec![1, 2, 3, 4]);
    let place = ExternalLocation::new("w.bin", 64, 4).unwrap();
    tensor.set_external(&place);
    assert_eq!(tensor.payload().unwrap(), Payload::External(place));
    assert!(ExternalLocation::new("../w.bin", 0, 1).is_err());
}

// What is mapped stays as it is when a new file takes its name; what opens the name next sees the new one's length.
// proves: E3
#[test]
fn a_file_that_was_replaced_or_cut_short_is_noticed_by_the_next_that_opens_it() {
    let folder = Folder::new();
    let (path, next) = (folder.path("w.bin"), folder.path("next.bin"));
    std::fs::write(&path, b"old data").unwrap();
    let place = ExternalLocation::new("w.bin", 0, 8).unwrap();
    let first = ExternalResolver::new(&folder.path("")).unwrap();
    let bytes = first.resolve(&place).unwrap();
    std::fs::write(&next, b"new").unwrap();
    std::fs::rename(&next, &path).unwrap();
    assert_eq!(*bytes, *b"old data");
    // One opening sees one file throughout.
    assert_eq!(first.resolve(&place).unwrap().address(), bytes.address());
    let opened_again = || ExternalResolver::new(&folder.path("")).unwrap().resolve(&place);
    assert!(matches!(opened_again(), Err(ExternalError::OutOfFile { end: 8, file_length: 3, .. })));
    std::fs::write(&path, b"new data").unwrap();
    assert_eq!(*opened_again().unwrap(), *b"new data");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(7).unwrap();
    assert!(matches!(opened_again(), Err(ExternalError::OutOfFile { file_length: 7, .. })));
}
