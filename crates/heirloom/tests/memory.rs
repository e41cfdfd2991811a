//! What loading takes: run alone, since it measures the process.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::sync::Arc;

use heirloom::formats::by_name;
use heirloom::graph::{self, Initializer, ModelBuilder, OpenOptions, SaveOptions};
use heirloom::mem::{DType, RegionKind, Tensor};
use heirloom::proto::ExternalLocation;
use heirloom::types::{TensorType, ValueType};
use heirloom::{CachePolicy, CallOptions, Engine, EngineOptions, Model};
use heirloom_testkit::folder::TempFolder;

/// Bytes of the process that no file backs.
fn private_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

const MIB: u64 = 1 << 20;

// proves: W5, O1
#[test]
fn u13_one_gib_of_external_weights_stays_in_its_file() {
    const K: usize = 4096;
    let format = by_name("q4_0").unwrap();
    let row = K / format.elements * format.record_bytes;
    let rows = (1 << 30) / row + 1;
    let folder = TempFolder::new();
    let bytes = (rows * row) as u64;
    assert!(bytes >= 1 << 30);
    // At an odd offset, in a file without a written block.
    let offset = 4097;
    fs::File::create(folder.path().join("w.bin")).unwrap().set_len(offset + bytes).unwrap();
    let mut model = ModelBuilder::new("large");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &ValueType::tensor(DType::Float, &[1, K])).unwrap();
    let logical = TensorType { dtype: DType::Float, shape: [rows, K].into_iter().collect() };
    let place = ExternalLocation::new("w.bin", offset, bytes).unwrap();
    let w = g
        .encoded("w", format.declaration(), Some(&logical), heirloom::graph::PayloadSource::External(place))
        .unwrap();
    let y = g.node("Gemm").input(&x).input(&w).attr("transB", 1).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[1, rows])).unwrap();
    let path = folder.path().join("m.onnx");
    fs::write(&path, model.finish().unwrap().to_bytes()).unwrap();

    let engine = Engine::new(EngineOptions { threads: Some(2) }).unwrap();
    let before = private_bytes();
    let model = Arc::new(Model::open(&path, &OpenOptions::default()).unwrap());
    assert_eq!(model.verify(), []);
    graph::inspect(&model).to_string();
    model.save(folder.path().join("again.onnx"), &SaveOptions::default()).unwrap();
    let session = engine.session(model.clone(), CachePolicy::default()).unwrap();
    let grown = private_bytes().saturating_sub(before);
    assert!(grown < 50 * MIB, "{grown} bytes after load, verify, inspect, save and bind");
    let counts = session.report().counts;
    assert_eq!((counts.kernel_copied_bytes, counts.state_copied_bytes), (0, 0));
    let Some(Initializer::Encoded(weight)) = model.graph().initializer(model.graph().value("w").unwrap())
    else {
        panic!()
    };
    assert_eq!(
        (weight.payload.kind(), weight.payload.region_offset()),
        (RegionKind::Mapped, offset as usize)
    );

    let x = Tensor::from_vec(&[1, K], vec![1f32; K]).unwrap();
    let out = session.run([("x", x)], &CallOptions::default()).unwrap();
    assert!(out["y"].as_tensor().unwrap().as_slice::<f32>().unwrap().iter().all(|&v| v == 0.0));
    let grown = private_bytes().saturating_sub(before);
    assert!(grown < 66 * MIB, "{grown} bytes after a product with the weights");
    assert!(session.report().scratch_bytes < 16 * MIB);
}

/// A sparse file of `bytes` bytes with `data` at `at`.
fn sparse(path: &std::path::Path, bytes: u64, at: u64, data: &[u8]) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = fs::File::create(path).unwrap();
    file.set_len(bytes).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(data).unwrap();
}

/// A model that gathers rows `[index]` of the external table that `declare` adds, opened.
fn gathering(
    folder: &TempFolder,
    columns: usize,
    declare: impl FnOnce(&mut heirloom::graph::GraphBuilder) -> Result<heirloom::graph::Var, graph::Error>,
) -> heirloom::Session {
    let mut model = ModelBuilder::new("large");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let index = g.input("index", &ValueType::tensor(DType::Int64, &[1])).unwrap();
    let w = declare(g).unwrap();
    let y = g.node("Gather").input(&w).input(&index).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[1, columns])).unwrap();
    let path = folder.path().join("m.onnx");
    fs::write(&path, model.finish().unwrap().to_bytes()).unwrap();
    assert_eq!(graph::verify_file(&path, &OpenOptions::default()).unwrap(), []);
    let engine = Engine::new(EngineOptions { threads: Some(2) }).unwrap();
    let session = engine.open(&path).unwrap();
    assert_eq!(session.report().counts.kernel_copied_bytes, 0);
    session
}

fn row(session: &heirloom::Session, index: usize) -> Vec<f32> {
    let index = Tensor::from_vec(&[1], vec![index as i64]).unwrap();
    let out = session.run([("index", index)], &CallOptions::default()).unwrap();
    out["y"].as_tensor().unwrap().as_slice::<f32>().unwrap().to_vec()
}

// More elements than 2^32, and more bytes, at an offset beyond both.
// proves: E2, E3, L5, W5
#[test]
fn records_of_more_than_4_gib_are_read_at_their_end() {
    const K: usize = 4096;
    let q8_0 = by_name("q8_0").unwrap();
    let row_bytes = K / q8_0.elements * q8_0.record_bytes;
    let rows = 1_100_000;
    let (offset, bytes) = (5 << 30 | 1, (rows * row_bytes) as u64);
    assert!(bytes > 1 << 32 && rows * K > 1 << 32);
    let values: Vec<f32> = (0..K).map(|i| (i % 255) as f32 - 127.0).collect();
    let mut last = vec![0; row_bytes];
    heirloom::types::Codec::encode(q8_0, &values, &mut last).unwrap();
    let folder = TempFolder::new();
    sparse(&folder.path().join("w.bin"), offset + bytes, offset + bytes - row_bytes as u64, &last);
    let before = private_bytes();
    let session = gathering(&folder, K, |g| {
        let logical = TensorType { dtype: DType::Float, shape: [rows, K].into_iter().collect() };
        let place = ExternalLocation::new("w.bin", offset, bytes).unwrap();
        g.encoded("w", q8_0.declaration(), Some(&logical), graph::PayloadSource::External(place))
    });
    let mut decoded = vec![0.0; K];
    heirloom::types::Codec::decode(q8_0, &last, &mut decoded).unwrap();
    assert_eq!(row(&session, rows - 1), decoded);
    assert_eq!(row(&session, rows - 2), vec![0.0; K]);
    let grown = private_bytes().saturating_sub(before);
    assert!(grown < 50 * MIB, "{grown} bytes");
}

// proves: A5, E3, W5
#[test]
fn affine_codes_of_more_than_2_gib_are_read_at_their_end() {
    const K: usize = 4096;
    let rows = (1 << 31) / K + 3;
    let bytes = (rows * K) as u64;
    assert!(bytes > 1 << 31);
    let last: Vec<u8> = (0..K).map(|i| (i % 256) as u8).collect();
    let folder = TempFolder::new();
    sparse(&folder.path().join("w.bin"), 3 + bytes, 3 + bytes - K as u64, &last);
    let session = gathering(&folder, K, |g| {
        let affine = heirloom::types::Affine {
            storage: DType::Int8,
            scale: Tensor::scalar(0.5f32),
            zero_point: None,
            axis: None,
            block_size: None,
        };
        let logical = TensorType { dtype: DType::Float, shape: [rows, K].into_iter().collect() };
        let place = ExternalLocation::new("w.bin", 3, bytes).unwrap();
        g.affine("w", &affine, &logical, graph::PayloadSource::External(place))
    });
    let expected: Vec<f32> = last.iter().map(|&code| f32::from(code as i8) * 0.5).collect();
    assert_eq!(row(&session, rows - 1), expected);
    assert_eq!(row(&session, 0), vec![0.0; K]);
}
