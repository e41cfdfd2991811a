//! States in files: everything comes back, and nothing else is believed.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use heirloom_graph::Model;
use heirloom_mem::{Bytes, DType, RegionKind, Storage, Tensor};
use heirloom_proto::ModelProto;
use heirloom_runtime::{CachePolicy, CallOptions, Session, SessionOptions, SnapshotError, State, StateError};
use heirloom_types::{
    Affine, EncodedValue, Layout, MapKey, StructLayout, StructType, StructValue, TensorType, Value, ValueType,
};
use sha2::{Digest, Sha256};

use crate::models::{
    decoder, elements, empty, feeds, floats, ints, model_with, session, session_with, shape, step,
};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

/// A file that is removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("heirloom-state-{name}-{}.onnx", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

fn fault(result: Result<State, StateError>) -> SnapshotError {
    match result.unwrap_err() {
        StateError::Snapshot { source, .. } => *source,
        other => panic!("{other}"),
    }
}

// proves: R1, Z1
#[test]
fn a_decoder_goes_on_from_a_file_to_the_bit_without_a_copy() {
    for dtype in [DType::Float, DType::Float16, DType::BFloat16] {
        let file = File::new(&format!("decoder-{}", dtype.name()));
        let session = session(decoder(2, dtype));
        let state = session.make_state(feeds(&empty(&session))).unwrap();
        state.run(feeds(&step(2, &[1, 2, 3])), &options()).unwrap();
        // A fork that lost the race has its rows in two segments.
        let fork = state.fork().unwrap();
        state.run(feeds(&step(2, &[4])), &options()).unwrap();
        fork.run(feeds(&step(2, &[5])), &options()).unwrap();
        for saved in [&state, &fork] {
            saved.save(&file.0).unwrap();
            let loaded = session.load_state(&file.0).unwrap();
            for ((name, a), (other, b)) in saved.values().unwrap().iter().zip(loaded.values().unwrap().iter())
            {
                assert_eq!((name, shape(a)), (other, shape(b)));
                b.for_each_payload(&mut |part| {
                    assert_eq!(part.address % 64, 0, "{name}: aligned in the file")
                });
                let bytes = |value: &Value| {
                    let mut bytes = Vec::new();
                    value.as_tensor().unwrap().for_each_run(|run| bytes.extend_from_slice(run));
                    bytes
                };
                assert_eq!(bytes(a), bytes(b), "{name}");
            }
            for id in [6, 7, 8] {
                let ids = step(2, &[id]);
                let (a, b) = (saved.run(feeds(&ids), &options()), loaded.run(feeds(&ids), &options()));
                for (name, value) in a.unwrap().iter() {
                    let mut bytes = [Vec::new(), Vec::new()];
                    value.as_tensor().unwrap().for_each_run(|run| bytes[0].extend_from_slice(run));
                    let other = b.as_ref().unwrap()[name].as_tensor().unwrap();
                    other.for_each_run(|run| bytes[1].extend_from_slice(run));
                    assert_eq!(bytes[0], bytes[1], "{name}");
                }
            }
            let counts = loaded.report().counts;
            assert_eq!(
                (counts.state_copied_bytes, counts.cache_copied_bytes),
                (0, 0),
                "the rows stay in the mapping"
            );
            loaded.truncate(2).unwrap();
            let held = saved.fork().unwrap();
            held.truncate(2).unwrap();
            let (a, b) = (
                held.run(feeds(&step(2, &[9])), &options()).unwrap(),
                loaded.run(feeds(&step(2, &[9])), &options()).unwrap(),
            );
            assert_eq!(shape(&a["present.0.key"]), shape(&b["present.0.key"]));
            assert_eq!(shape(&a["y"]), shape(&b["y"]));
        }
    }
}

#[test]
fn saving_over_the_file_that_a_state_was_loaded_from_is_safe() {
    let file = File::new("again");
    let session = session(decoder(1, DType::Float));
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    state.run(feeds(&step(1, &[1, 2, 3])), &options()).unwrap();
    state.save(&file.0).unwrap();
    let loaded = session.load_state(&file.0).unwrap();
    for id in 4..8 {
        loaded.run(feeds(&step(1, &[id])), &options()).unwrap();
        loaded.save(&file.0).unwrap();
    }
    let again = session.load_state(&file.0).unwrap();
    let straight = session.make_state(feeds(&empty(&session))).unwrap();
    straight.run(feeds(&step(1, &[1, 2, 3, 4, 5, 6, 7])), &options()).unwrap();
    for ((_, a), (_, b)) in again.values().unwrap().iter().zip(straight.values().unwrap().iter()) {
        assert_eq!(elements::<f32>(a), elements::<f32>(b));
    }
    again.close().unwrap();
    assert!(matches!(again.save(&file.0), Err(StateError::Closed)));
}

fn codebook() -> Arc<StructType> {
    let build = StructType::structure("Block").type_id(4711);
    let build = build.constant("table", floats(&[4], &[-1.0, 0.0, 0.5, 2.0]));
    build.tensor("codes", DType::Uint8, &[4]).tensor("scale", DType::Float, &[]).build().unwrap()
}

fn encoded(layout: Layout, logical: Option<TensorType>, payload: Vec<u8>) -> Value {
    Value::Encoded(Arc::new(EncodedValue {
        name: String::new(),
        layout,
        logical,
        payload: Bytes::from_vec(payload),
    }))
}

/// Types and values of every kind that can be retained.
fn kinds() -> Vec<(&'static str, ValueType, Value)> {
    let mut list: Vec<(&'static str, ValueType, Value)> = Vec::new();
    let float = ValueType::unranked(DType::Float);
    let fixed = ValueType::tensor(DType::Float, &[2]);
    let pair = |a: f32, b: f32| Value::from(floats(&[2], &[a, b]));
    for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.bit_width().is_some()) {
        let bytes = dtype.payload_bytes(6).unwrap();
        // BOOL knows 0 and 1; what is left of the last byte is 0.
        let payload = Bytes::from_vec(
            (0..bytes).map(|at| if dtype == DType::Bool { 1 } else { at as u8 % 16 }).collect::<Vec<_>>(),
        );
        let tensor = Tensor::new(dtype, &[2, 3], payload).unwrap();
        list.push((dtype.name(), ValueType::tensor(dtype, &[2, 3]), tensor.into()));
    }
    list.push(("empty", float.clone(), floats(&[3, 0, 2], &[]).into()));
    list.push(("scalar", float.clone(), floats(&[], &[7.0]).into()));
    let strided = Bytes::from_vec((0..48u8).collect::<Vec<_>>());
    let strided = Tensor::strided(DType::Float, &[2, 2], &[4, 1], strided).unwrap();
    list.push(("strided", float.clone(), strided.into()));
    let block = codebook();
    let layout = Layout::Struct(Arc::new(StructLayout::new(block.clone()).unwrap()));
    list.push((
        "records",
        ValueType::Struct(block.clone()),
        encoded(layout.clone(), None, (0..24).collect()),
    ));
    let fields = StructType::structure("Cache").type_id(4712);
    let fields = fields.typed("keys", fixed.clone()).typed("values", ValueType::Struct(block));
    let fields = fields.typed("length", ValueType::tensor(DType::Int64, &[])).build().unwrap();
    let cache = StructValue {
        fields: vec![
            ("keys".into(), pair(1.0, 2.0)),
            ("values".into(), encoded(layout, None, (8..16).collect())),
            ("length".into(), ints(&[], &[7]).into()),
        ],
    };
    list.push(("struct", ValueType::Struct(fields), Value::Struct(Arc::new(cache))));
    let affine = Affine {
        storage: DType::Int8,
        scale: Tensor::scalar(0.25f32),
        zero_point: Some(Tensor::scalar(3i8)),
        axis: None,
        block_size: None,
    };
    let logical = TensorType { dtype: DType::Float, shape: [2].into_iter().collect() };
    let affine = encoded(Layout::Affine(Arc::new(affine)), Some(logical), vec![5, 250]);
    list.push((
        "mixed",
        ValueType::sequence(fixed.clone()),
        Value::Sequence(Arc::new(vec![pair(3.0, 4.0), affine])),
    ));
    list.push(("none", ValueType::sequence(fixed.clone()), Value::Sequence(Arc::new(vec![]))));
    let map = vec![(MapKey::Int(-3), pair(5.0, 6.0)), (MapKey::Int(9), pair(7.0, 8.0))];
    list.push(("map", ValueType::map(DType::Int64, fixed.clone()), Value::Map(Arc::new(map))));
    let optional = |value: Option<Value>| Value::Optional(value.map(Arc::new));
    list.push(("some", ValueType::optional(fixed.clone()), optional(Some(pair(9.0, 1.0)))));
    list.push(("nothing", ValueType::optional(fixed.clone()), optional(None)));
    let nested = ValueType::optional(ValueType::sequence(ValueType::sequence(fixed)));
    let inner = Value::Sequence(Arc::new(vec![pair(0.5, 0.25)]));
    list.push(("nested", nested, optional(Some(Value::Sequence(Arc::new(vec![inner.clone(), inner]))))));
    list
}

/// Every value passes through; `x` is there to have something to feed.
fn keeper(kinds: &[(&'static str, ValueType, Value)]) -> Arc<Model> {
    model_with(|builder| {
        let g = builder.graph();
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("x", &ty).unwrap();
        let y = g.node("Neg").input(&x).output("y").unwrap();
        g.output(&y, &ty).unwrap();
        for (name, ty, _) in kinds {
            let value = g.input(name, ty).unwrap();
            let next = g.node("Identity").input(&value).output(&format!("{name}.next")).unwrap();
            g.output(&next, ty).unwrap();
            g.bind(&value, &next).unwrap();
        }
    })
}

/// The payload bytes of a value, region by region, and where they are.
fn payloads(value: &Value) -> Vec<(String, usize, usize)> {
    let mut list = Vec::new();
    value.for_each_payload(&mut |part| list.push((part.path.to_string(), part.address, part.bytes)));
    list
}

fn contents(value: &Value) -> String {
    fn bytes(tensor: &Tensor) -> Vec<u8> {
        let mut list = Vec::new();
        tensor.for_each_run(|run| list.extend_from_slice(run));
        list
    }
    match value {
        Value::Tensor(tensor) => format!("{} {:?} {:?}", tensor.dtype(), tensor.shape(), bytes(tensor)),
        Value::Encoded(value) => format!("{} {:?} {:?}", value.layout, value.logical, &value.payload[..]),
        Value::Struct(fields) => {
            fields.fields.iter().map(|(name, value)| format!("{name}={} ", contents(value))).collect()
        }
        Value::Sequence(list) => format!("[{}]", list.iter().map(contents).collect::<Vec<_>>().join("; ")),
        Value::Map(list) => list.iter().map(|(key, value)| format!("{key}->{} ", contents(value))).collect(),
        Value::Optional(value) => format!("?{}", value.as_ref().map_or("".into(), |value| contents(value))),
        other => panic!("{other:?}"),
    }
}

// proves: R1, Z1, R7
#[test]
fn values_of_every_kind_are_retained_untouched_saved_and_loaded() {
    let kinds = kinds();
    assert!(kinds.len() > 30, "every fixed-width type is there");
    let session = session(keeper(&kinds));
    let initial: Vec<(String, Value)> =
        kinds.iter().map(|(name, _, value)| (name.to_string(), value.clone())).collect();
    let state = session.make_state(feeds(&initial)).unwrap();
    for _ in 0..3 {
        state.run([("x", floats(&[1], &[1.0]))], &options()).unwrap();
    }
    let file = File::new("kinds");
    state.save(&file.0).unwrap();
    let loaded = session.load_state(&file.0).unwrap();
    loaded.run([("x", floats(&[1], &[1.0]))], &options()).unwrap();
    let (kept, read) = (state.values().unwrap(), loaded.values().unwrap());
    for (name, _, value) in &kinds {
        assert_eq!(payloads(kept.get(name).unwrap()), payloads(value), "{name}: the very same memory");
        assert_eq!(contents(read.get(name).unwrap()), contents(value), "{name}");
        read.get(name).unwrap().for_each_payload(&mut |part| {
            let scale = part.path.ends_with("scale") || part.path.ends_with("zero_point");
            assert!(
                part.bytes == 0 || scale || part.kind == RegionKind::Mapped,
                "{name} {} {:?}",
                part.path,
                part.kind
            );
        });
    }
    assert_eq!(state.report().counts.state_copied_bytes, 0);
    assert_eq!(state.report().counts.allocations, 1, "the output, used again");
}

/// A state file whose contents were changed, its checksum made right again.
fn forged(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    // Key, digest of 64 digits, and the lengths around them.
    let sum = 2 + 2 + 21 + 2 + 64;
    let mut bytes = bytes.to_vec();
    bytes.truncate(bytes.len() - sum);
    change(&mut bytes);
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    bytes.extend([0x72, (sum - 2) as u8, 0x0a, 21]);
    bytes.extend(b"heirloom.state.sha256");
    bytes.extend([0x12, 64]);
    bytes.extend(digest.bytes());
    bytes
}

fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("the text is there");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

fn saved(file: &File) -> (Session, Vec<u8>) {
    let session = session(decoder(1, DType::Float));
    let state = session.make_state(feeds(&empty(&session))).unwrap();
    state.run(feeds(&step(1, &[1, 2, 3])), &options()).unwrap();
    state.save(&file.0).unwrap();
    let bytes = fs::read(&file.0).unwrap();
    (session, bytes)
}

#[test]
fn every_changed_byte_and_every_cut_is_noticed() {
    let file = File::new("damaged");
    let (session, bytes) = saved(&file);
    assert_eq!(forged(&bytes, |_| {}), bytes, "the layout of the end is as documented");
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&file.0, &damaged).unwrap();
        let fault = fault(session.load_state(&file.0));
        assert!(
            matches!(fault, SnapshotError::Checksum | SnapshotError::NoState { .. }),
            "byte {at}: {fault}"
        );
    }
    for len in (0..bytes.len()).step_by(11) {
        fs::write(&file.0, &bytes[..len]).unwrap();
        let fault = fault(session.load_state(&file.0));
        assert!(
            matches!(fault, SnapshotError::Checksum | SnapshotError::NoState { .. }),
            "cut at {len}: {fault}"
        );
    }
    fs::write(&file.0, [&bytes[..], &[0x08, 0x01]].concat()).unwrap();
    assert!(matches!(fault(session.load_state(&file.0)), SnapshotError::Checksum));
}

#[test]
fn hostile_contents_under_a_right_checksum_are_refused() {
    let file = File::new("hostile");
    let (session, bytes) = saved(&file);
    type Change = fn(&mut Vec<u8>);
    let cases: &[(&str, Change, &str)] = &[
        ("another version", |b| replace(b, "\"version\":1", "\"version\":7"), "version 7"),
        ("no model", |b| replace(b, "\"model\":", "\"mdoel\":"), "no `model`"),
        (
            "an unknown input",
            |b| replace(b, "\"input\":\"past.0.key\"", "\"input\":\"past.9.key\""),
            "not persistent",
        ),
        ("an unknown leaf", |b| replace(b, "\"cache\":\"0: ", "\"cache\":\"7: "), "unknown leaf"),
        ("an unknown kind", |b| replace(b, "\"cache\":", "\"cacke\":"), "unknown kind"),
        ("an axis outside", |b| replace(b, "\"axis\":2", "\"axis\":9"), "no such axis"),
        ("an axis beyond numbers", |b| replace(b, "\"axis\":2", "\"axis\":-"), "malformed"),
        ("no tree", |b| replace(b, "heirloom.state", "heirloom.stale"), "no `heirloom.state`"),
    ];
    for (what, change, message) in cases {
        fs::write(&file.0, forged(&bytes, change)).unwrap();
        let error = session.load_state(&file.0).unwrap_err().to_string();
        assert!(error.contains(message), "{what}: {error}");
    }
    // Dimensions that the payload does not have.
    let proto = ModelProto::decode(Bytes::from_vec(bytes.clone())).unwrap();
    assert_eq!(proto.graph().unwrap().initializer().len(), 2);
    let deep = "[".repeat(100_000);
    let begin = bytes.windows(10).position(|w| w == b"\"version\":").unwrap() - 1;
    let nested = forged(&bytes, |b| {
        let n = deep.len().min(b.len() - begin);
        b[begin..begin + n.min(200)].copy_from_slice(&deep.as_bytes()[..n.min(200)]);
    });
    fs::write(&file.0, nested).unwrap();
    assert!(matches!(fault(session.load_state(&file.0)), SnapshotError::Malformed(_)));
}

#[test]
fn a_state_of_another_model_is_refused() {
    let file = File::new("model");
    let (own, _) = saved(&file);
    assert!(own.load_state(&file.0).is_ok());
    // The same model in another session, made by another process as it were.
    assert!(session(decoder(1, DType::Float)).load_state(&file.0).is_ok());
    for other in [decoder(2, DType::Float), decoder(1, DType::Float16)] {
        let fault = fault(session(other).load_state(&file.0));
        assert!(matches!(fault, SnapshotError::Model { .. }), "{fault}");
    }
    let none = own.load_state(file.0.with_extension("missing"));
    assert!(matches!(fault(none), SnapshotError::Map(_)));
    assert!(matches!(fault(own.load_state(std::env::temp_dir())), SnapshotError::Map(_)));
}

#[test]
fn a_loaded_state_keeps_to_the_sessions_capacity() {
    let file = File::new("capacity");
    let (_, _) = saved(&file);
    let cache = CachePolicy::fixed(4);
    let small = session_with(decoder(1, DType::Float), SessionOptions { cache, ..SessionOptions::default() });
    let state = small.load_state(&file.0).unwrap();
    state.run(feeds(&step(1, &[4])), &options()).unwrap();
    assert!(state.run(feeds(&step(1, &[5])), &options()).is_err());
    let values = state.values().unwrap();
    let key = values.get("past.0.key").unwrap().as_tensor().unwrap();
    assert!(matches!(key.storage(), Storage::Append { .. }));
    assert_eq!(key.shape(), [1, 2, 4, 8]);
}
