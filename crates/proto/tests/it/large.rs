//! Files of gigabytes, sparse: nothing of them may be read, copied or written unasked.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use heirloom_mem::{Bytes, RegionKind};
use heirloom_proto::{Error, ExternalResolver, ModelProto, READABLE_BY_ALL, SaveOptions, load, save};

use crate::files::Folder;
use crate::model::{entry, field, tensor};

const GIB: u64 = 1 << 30;

/// Anonymous memory of this process in bytes.
#[cfg(target_os = "linux")]
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Tag and length of a length-delimited field.
fn head(number: u64, length: u64) -> Vec<u8> {
    [varint(number << 3 | 2), varint(length)].concat()
}

/// A model whose initializers have `raw_data` of these lengths, as a hole in the file, and a graph name behind them.
fn write_sparse(path: &Path, lengths: &[u64]) {
    let tensors: Vec<(Vec<u8>, u64)> = lengths
        .iter()
        .map(|length| {
            let before = [field(2, 0, &[2]), field(8, 2, b"w"), head(9, *length)].concat();
            let inner = before.len() as u64 + length;
            ([head(5, inner), before].concat(), *length)
        })
        .collect();
    let tail = [field(10, 2, b"far away"), field(2, 2, b"name")].concat();
    let graph =
        tensors.iter().map(|(before, length)| before.len() as u64 + length).sum::<u64>() + tail.len() as u64;
    let mut file = File::create(path).unwrap();
    file.write_all(&[field(1, 0, &[10]), head(7, graph)].concat()).unwrap();
    for (before, length) in tensors {
        file.write_all(&before).unwrap();
        file.seek(SeekFrom::Current(length as i64)).unwrap();
    }
    file.write_all(&tail).unwrap();
}

/// A writer that counts and looks at nothing.
#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn check(lengths: &[u64]) {
    let folder = Folder::new();
    let path = folder.path("large.onnx");
    write_sparse(&path, lengths);
    let before = anonymous();
    let mut model = load(&path).unwrap();
    let graph = model.graph().unwrap();
    assert_eq!((graph.name(), graph.doc_string()), ("name", "far away"));
    for (tensor, length) in graph.initializer().iter().zip(lengths) {
        let raw = tensor.raw_data().unwrap();
        assert_eq!((raw.len() as u64, raw.kind()), (*length, RegionKind::Mapped));
    }
    model.graph_mut().set_name("renamed");
    let size = model.encoded_len();
    assert_eq!(size, std::fs::metadata(&path).unwrap().len() + 3);
    let mut count = Count::default();
    model.encode_to(&mut count).unwrap();
    assert_eq!(count.0, size);

    let target = folder.path("out.onnx");
    let error = save(&model, &target, &SaveOptions::default()).unwrap_err();
    assert!(
        matches!(error, Error::Over2Gib { bytes, limit: READABLE_BY_ALL, .. } if bytes == size),
        "{error}"
    );
    assert!(error.to_string().contains("external data"), "{error}");
    assert_eq!(std::fs::read_dir(folder.root()).unwrap().count(), 1, "nothing was written");
    let grown = anonymous().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes of anonymous memory");
}

// proves: W5
#[cfg(target_os = "linux")]
#[test]
fn one_tensor_of_5_gib_is_read_in_place_and_its_graph_can_be_edited() {
    check(&[5 * GIB]);
}

// proves: W5
#[cfg(target_os = "linux")]
#[test]
fn u5_three_tensors_of_900_mib_are_refused_before_a_byte_is_written() {
    check(&[900 << 20, 900 << 20, 900 << 20]);
}

// proves: W5
#[cfg(target_os = "linux")]
#[test]
fn u5_a_rename_beside_3_gib_of_external_data_touches_kilobytes() {
    let folder = Folder::new();
    File::create(folder.path("weights.bin")).unwrap().set_len(3 * GIB).unwrap();
    let written = std::fs::metadata(folder.path("weights.bin")).unwrap().modified().unwrap();
    let mut model = ModelProto::new();
    let mut weight = tensor("w", &[3 << 30], Vec::new());
    weight.clear_raw_data();
    weight
        .external_data_mut()
        .extend([entry("location", "weights.bin"), entry("length", &(3 * GIB).to_string())]);
    weight.set_data_location(heirloom_proto::tensor_proto::DataLocation::EXTERNAL);
    model.graph_mut().initializer_mut().push(weight);
    model.graph_mut().output_mut().push(crate::model::value("out", crate::model::float_type(&["n"])));
    let path = folder.path("model.onnx");
    save(&model, &path, &SaveOptions::default()).unwrap();

    let before = anonymous();
    let mut model = load(&path).unwrap();
    let resolver = ExternalResolver::for_model(&path).unwrap();
    let payload = model.graph().unwrap().initializer()[0].payload_bytes(&resolver).unwrap().unwrap();
    assert_eq!((payload.len() as u64, payload.kind()), (3 * GIB, RegionKind::Mapped));
    model.graph_mut().output_mut()[0].set_name("renamed");
    save(&model, &folder.path("renamed.onnx"), &SaveOptions::default()).unwrap();
    assert!(anonymous().saturating_sub(before) < 64 << 20);
    assert!(std::fs::metadata(folder.path("renamed.onnx")).unwrap().len() < 4096);
    assert_eq!(std::fs::metadata(folder.path("weights.bin")).unwrap().modified().unwrap(), written);
    assert_eq!(load(&folder.path("renamed.onnx")).unwrap().graph().unwrap().output()[0].name(), "renamed");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "writes 2.7 GB"]
fn a_file_of_more_than_2_gib_is_written_when_that_is_allowed() {
    let folder = Folder::new();
    let path = folder.path("large.onnx");
    write_sparse(&path, &[900 << 20, 900 << 20, 900 << 20]);
    let mut model = load(&path).unwrap();
    model.graph_mut().set_name("renamed");
    let before = anonymous();
    save(&model, &path, &SaveOptions::default().allow_over_2gib(true)).unwrap();
    assert!(anonymous().saturating_sub(before) < 64 << 20);
    assert_eq!(load(&path).unwrap().graph().unwrap().name(), "renamed");
}

// proves: W3, W5
#[test]
fn a_large_unknown_field_is_kept_without_a_copy() {
    let unknown = field(777, 2, &vec![1; 1 << 20]);
    let bytes = Bytes::from_vec([field(1, 0, &[1]), unknown.clone()].concat());
    let mut model = ModelProto::decode(bytes.clone()).unwrap();
    let kept = &model.unknown_fields()[0].bytes;
    assert_eq!((kept.region_id(), kept.len()), (bytes.region_id(), unknown.len()));
    model.set_ir_version(2);
    assert_eq!(model.encoded_len(), bytes.len() as u64);
}
