//! Prepared objects: made once, shared, evicted, kept in a folder, never trusted.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};

use heirloom_graph::Model;
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_runtime::{
    BuildCx, BuildError, CacheError, CallOptions, Kernel, KernelError, KernelLayout, KernelRegistry,
    KernelSpec, Prepack, PrepareCx, Prepared, PreparedStore, RunCx, RunError, Session, SessionOptions,
    StoreOptions, StoreReport,
};
use heirloom_types::{Affine, EncodedValue, Layout, TensorType, Value, ValueType};

use crate::models::{elements, floats, model_with};

/// `y = x + w[n-1..0]`, where the prepared form is `w` from its end; `used` says whether it was there.
struct AddReversed {
    prepared: Option<Prepared>,
    version: u32,
}

/// Times that a weight of so many elements was packed.
static PACKED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

fn packed(elements: usize) -> u64 {
    PACKED[elements].load(SeqCst)
}

/// The weight from its end.
fn reversed(value: &Value) -> Vec<f32> {
    match value {
        Value::Tensor(tensor) => tensor.as_slice::<f32>().unwrap().iter().rev().copied().collect(),
        Value::Encoded(encoded) => {
            let scale = encoded.layout.as_affine().unwrap().scale.as_slice::<f32>().unwrap()[0];
            encoded.payload.iter().rev().map(|&code| f32::from(code as i8) * scale).collect()
        }
        _ => unreachable!("weights are tensors or affine"),
    }
}

fn read(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

impl Kernel for AddReversed {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        let Some(weight) = cx.constant(1) else { return };
        let bytes = reversed(weight).len() * 4;
        let parameters = [4].into_iter().collect();
        self.prepared =
            cx.claim(1, KernelLayout { name: "test.reversed", version: self.version, parameters, bytes });
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let weight = reversed(cx.value(1).unwrap());
        let object = match &self.prepared {
            None => None,
            Some(prepared) => cx.prepared(1, prepared, |to| {
                if PACKED[weight.len()].fetch_add(1, SeqCst) == 0 && weight[0] == 13.0 {
                    return Err(KernelError::Other("an unlucky weight".into()));
                }
                for (to, w) in to.chunks_exact_mut(4).zip(&weight) {
                    to.copy_from_slice(&w.to_le_bytes());
                }
                Ok(())
            })?,
        };
        let weight = object.as_ref().map_or(weight, |object| read(object));
        let y: Vec<f32> = cx.slice::<f32>(0)?.iter().zip(weight).map(|(x, w)| x + w).collect();
        cx.set(0, floats(&[y.len()], &y));
        cx.set(1, Tensor::scalar(i64::from(object.is_some())));
        Ok(())
    }
}

const fn spec(build: fn(&BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError>) -> KernelSpec {
    KernelSpec { domain: "test", op: "AddReversed", versions: (1, 1), rank: 0, accepts: |_| true, build }
}

const FIRST: KernelSpec = spec(|_| Ok(Box::new(AddReversed { prepared: None, version: 1 })));
const SECOND: KernelSpec = spec(|_| Ok(Box::new(AddReversed { prepared: None, version: 2 })));

fn adder(weights: &[Value]) -> Arc<Model> {
    model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let g = builder.graph();
        let ty = ValueType::unranked(DType::Float);
        let x = g.input("x", &ty).unwrap();
        for (at, weight) in weights.iter().enumerate() {
            let name = format!("w{at}");
            let w = match weight {
                Value::Tensor(tensor) => g.initializer(&name, tensor).unwrap(),
                Value::Encoded(encoded) => {
                    g.encoded_value(&EncodedValue { name, ..EncodedValue::clone(encoded) }).unwrap()
                }
                _ => unreachable!("weights are tensors or affine"),
            };
            let names = [format!("y{at}"), format!("used{at}")];
            let node = g.node("AddReversed").domain("test").input(&x).input(&w);
            let [y, used] = node.outputs([&*names[0], &*names[1]]).unwrap();
            g.output(&y, &ty).unwrap();
            g.output(&used, &ValueType::tensor(DType::Int64, &[])).unwrap();
        }
    })
}

/// `n` weights `first`, `first + 1`, …
fn weights(first: f32, n: usize) -> Value {
    let list: Vec<f32> = (0..n).map(|i| first + i as f32).collect();
    floats(&[n], &list).into()
}

fn codes(list: &[i8], scale: f32) -> Value {
    let affine = Affine {
        storage: DType::Int8,
        scale: Tensor::scalar(scale),
        zero_point: None,
        axis: None,
        block_size: None,
    };
    let logical = TensorType { dtype: DType::Float, shape: [list.len()].into_iter().collect() };
    let payload = Bytes::from_vec(list.to_vec());
    let layout = Layout::Affine(Arc::new(affine));
    Value::Encoded(Arc::new(EncodedValue { name: "w".into(), layout, logical: Some(logical), payload }))
}

fn store(options: StoreOptions) -> Arc<PreparedStore> {
    Arc::new(PreparedStore::new(options).unwrap())
}

fn session(model: &Arc<Model>, store: &Arc<PreparedStore>) -> Session {
    session_of(FIRST, model, Prepack::On(store.clone()))
}

fn session_of(spec: KernelSpec, model: &Arc<Model>, prepack: Prepack) -> Session {
    let registry = KernelRegistry::new().with([spec]);
    let options = SessionOptions { prepack, ..SessionOptions::default() };
    Session::new(model.clone(), &registry, options).unwrap()
}

fn run(session: &Session, n: usize) -> Result<(Vec<f32>, bool), RunError> {
    let x = floats(&[n], &vec![0.5; n]);
    let out = session.run([("x", x)], &CallOptions::default())?;
    Ok((elements(out.get("y0").unwrap()), elements::<i64>(out.get("used0").unwrap()) == [1]))
}

/// What [`run`] gives for [`weights`].
fn expected(first: f32, n: usize) -> Vec<f32> {
    (0..n).rev().map(|i| first + i as f32 + 0.5).collect()
}

// proves: P1
#[test]
fn nothing_is_prepared_unless_asked_for() {
    let model = adder(&[weights(1.0, 1)]);
    let session = session_of(FIRST, &model, Prepack::default());
    assert_eq!(run(&session, 1).unwrap(), (expected(1.0, 1), false));
    assert_eq!(packed(1), 0);
}

// proves: P1
#[test]
fn an_object_is_made_at_first_use_shared_by_sessions_and_gone_with_the_last() {
    let model = adder(&[weights(1.0, 2)]);
    let store = store(StoreOptions::default());
    let one = session(&model, &store);
    let two = session(&model, &store);
    assert_eq!(store.report(), StoreReport { claimed: 1, ..StoreReport::default() });
    for session in [&one, &two, &one] {
        assert_eq!(run(session, 2).unwrap(), (expected(1.0, 2), true));
    }
    assert_eq!(packed(2), 1);
    let made = StoreReport { claimed: 1, objects: 1, bytes: 8, made: 1, shared: 2, ..StoreReport::default() };
    assert_eq!(store.report(), made);
    drop(one);
    assert_eq!(store.report(), made);
    drop(two);
    assert_eq!(store.report(), StoreReport { made: 1, shared: 2, ..StoreReport::default() });
}

// proves: P1
#[test]
fn equal_codes_with_other_scales_and_other_kernel_layouts_are_other_objects() {
    let list = [1i8, -2, 3];
    let (small, large) = (codes(&list, 0.5), codes(&list, 2.0));
    let Value::Encoded(shared) = &small else { unreachable!() };
    // The very same codes in memory under another scale.
    let Value::Encoded(other) = &large else { unreachable!() };
    let other = EncodedValue { payload: shared.payload.clone(), ..EncodedValue::clone(other) };
    let (first, second) = (adder(&[small]), adder(&[Value::Encoded(Arc::new(other))]));
    let store = store(StoreOptions::default());
    let sessions = [session(&first, &store), session(&second, &store)];
    let newer = session_of(SECOND, &first, Prepack::On(store.clone()));
    assert_eq!(run(&sessions[0], 3).unwrap(), (vec![2.0, -0.5, 1.0], true));
    assert_eq!(run(&sessions[1], 3).unwrap(), (vec![6.5, -3.5, 2.5], true));
    assert_eq!(run(&newer, 3).unwrap(), (vec![2.0, -0.5, 1.0], true));
    assert_eq!((packed(3), store.report().claimed, store.report().objects), (3, 3, 3));
}

// proves: P1
#[test]
fn sixteen_threads_at_once_make_an_object_once() {
    let model = adder(&[weights(1.0, 4)]);
    let store = store(StoreOptions::default());
    let sessions: Vec<_> = (0..4).map(|_| session(&model, &store)).collect();
    let start = Barrier::new(16);
    std::thread::scope(|scope| {
        for at in 0..16 {
            let (session, start) = (&sessions[at % 4], &start);
            scope.spawn(move || {
                start.wait();
                assert_eq!(run(session, 4).unwrap(), (expected(1.0, 4), true));
            });
        }
    });
    assert_eq!(packed(4), 1);
}

// proves: P1
#[test]
fn an_object_that_could_not_be_made_leaves_nothing_and_is_tried_again() {
    let list: Vec<f32> = (0..5).map(|i| 9.0 + i as f32).collect();
    let model = adder(&[floats(&[5], &list).into()]);
    let store = store(StoreOptions::default());
    let session = session(&model, &store);
    assert!(run(&session, 5).unwrap_err().to_string().contains("AddReversed"));
    assert_eq!((store.report().bytes, store.report().objects), (0, 0));
    assert_eq!(run(&session, 5).unwrap(), (expected(9.0, 5), true));
    assert_eq!((store.report().bytes, packed(5)), (20, 2));
}

// proves: P1
#[test]
fn objects_keep_to_the_budget_and_only_idle_ones_make_room() {
    let (first, second) = (adder(&[weights(1.0, 6)]), adder(&[weights(2.0, 6)]));
    let store = store(StoreOptions { budget: Some(40), ..StoreOptions::default() });
    let (a, b) = (session(&first, &store), session(&second, &store));
    // A third is larger than the budget: not even claimed.
    let huge = session(&adder(&[weights(1.0, 11)]), &store);
    assert_eq!(run(&huge, 11).unwrap(), (expected(1.0, 11), false));
    assert_eq!(store.report().claimed, 2);
    assert_eq!(run(&a, 6).unwrap(), (expected(1.0, 6), true));
    assert_eq!(
        run(&b, 6).unwrap(),
        (expected(2.0, 6), false),
        "no room: from the constant, with the same result"
    );
    for _ in 0..3 {
        // In turns: neither pushes the other out.
        assert_eq!(run(&a, 6).unwrap(), (expected(1.0, 6), true));
        assert_eq!(run(&b, 6).unwrap(), (expected(2.0, 6), false));
    }
    assert_eq!((store.report().bytes, store.report().evicted), (24, 0));
    let used: Vec<bool> = (0..12).map(|_| run(&b, 6).unwrap().1).collect();
    assert!(!used[0] && used[11], "`a` is idle, `b` takes its place: {used:?}");
    assert_eq!((store.report().bytes, store.report().evicted, packed(6)), (24, 1, 2));
    store.set_budget(Some(10));
    assert_eq!((store.report().bytes, store.report().objects), (0, 0));
    assert_eq!(run(&b, 6).unwrap(), (expected(2.0, 6), false));
    store.set_budget(None);
    assert!(run(&a, 6).unwrap().1 && run(&b, 6).unwrap().1);
    store.trim();
    assert_eq!(store.report().bytes, 0);
    assert!(run(&a, 6).unwrap().1);
}

/// Holds the handle of its object while it waits.
struct Holder(Option<Prepared>, Arc<Barrier>);

impl Kernel for Holder {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        let layout =
            KernelLayout { name: "test.held", version: 1, parameters: [].into_iter().collect(), bytes: 64 };
        self.0 = cx.claim(0, layout);
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let object = cx.prepared(0, self.0.as_ref().unwrap(), |to| {
            to.fill(7);
            Ok(())
        })?;
        self.1.wait();
        self.1.wait();
        let sum = object.unwrap().iter().map(|&b| i64::from(b)).sum::<i64>();
        cx.set(0, Tensor::scalar(sum));
        Ok(())
    }
}

// proves: P1
#[test]
fn what_a_call_reads_is_never_dropped() {
    static GATE: std::sync::LazyLock<Arc<Barrier>> = std::sync::LazyLock::new(|| Arc::new(Barrier::new(2)));
    let held = KernelSpec {
        domain: "test",
        op: "Held",
        versions: (1, 1),
        rank: 0,
        accepts: |_| true,
        build: |_| Ok(Box::new(Holder(None, GATE.clone()))),
    };
    let model = model_with(|builder| {
        builder.opset("test", 1).unwrap();
        let g = builder.graph();
        let w = g.initializer("w", &floats(&[1], &[1.0])).unwrap();
        let y = g.node("Held").domain("test").input(&w).output("y").unwrap();
        g.output(&y, &ValueType::tensor(DType::Int64, &[])).unwrap();
    });
    let store = store(StoreOptions::default());
    let session = session_of(held, &model, Prepack::On(store.clone()));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| session.run([] as [(&str, Value); 0], &CallOptions::default()).unwrap());
        GATE.wait();
        store.trim();
        assert_eq!((store.report().bytes, store.report().evicted), (64, 0));
        GATE.wait();
        assert_eq!(elements::<i64>(call.join().unwrap().get("y").unwrap()), [7 * 64]);
    });
    store.trim();
    assert_eq!((store.report().bytes, store.report().evicted), (0, 1));
}

/// A folder that is removed with its contents.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("heirloom-prepared-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Folder(path)
    }

    fn store(&self) -> Arc<PreparedStore> {
        store(StoreOptions { folder: Some(self.0.clone()), ..StoreOptions::default() })
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Another model of equal contents, as another process would load it.
fn fresh(n: usize) -> Arc<Model> {
    adder(&[weights(1.0, n)])
}

// proves: P1, P2
#[test]
fn objects_outlive_the_store_in_a_folder_and_are_used_in_the_mapping() {
    let folder = Folder::new("outlive");
    let first = folder.store();
    assert_eq!(run(&session(&fresh(20), &first), 20).unwrap(), (expected(1.0, 20), true));
    assert_eq!((packed(20), folder.files().len()), (1, 1));
    drop(first);
    let second = folder.store();
    assert_eq!(run(&session(&fresh(20), &second), 20).unwrap(), (expected(1.0, 20), true));
    assert_eq!((packed(20), second.report().loaded, second.report().made), (1, 1, 0));
    // Other contents, and a kernel of another version, do not find it.
    assert_eq!(run(&session(&adder(&[weights(2.0, 20)]), &second), 20).unwrap(), (expected(2.0, 20), true));
    let newer = session_of(SECOND, &fresh(20), Prepack::On(second.clone()));
    assert!(run(&newer, 20).unwrap().1);
    assert_eq!((packed(20), folder.files().len()), (3, 3));
    assert!(
        folder.files().iter().all(|file| file.extension().is_some_and(|e| e == "prepared")),
        "no leftovers"
    );
}

// proves: P2
#[test]
fn damaged_cut_lengthened_swapped_and_foreign_files_are_made_anew() {
    let folder = Folder::new("damaged");
    let n = 21;
    assert!(run(&session(&fresh(n), &folder.store()), n).unwrap().1);
    let file = folder.files().remove(0);
    let good = fs::read(&file).unwrap();
    let other = {
        let folder = Folder::new("damaged-other");
        assert!(run(&session(&adder(&[weights(2.0, n)]), &folder.store()), n).unwrap().1);
        fs::read(folder.files().remove(0)).unwrap()
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", vec![]),
        ("cut header", good[..40].to_vec()),
        ("cut object", good[..good.len() - 1].to_vec()),
        ("longer", [&good[..], &[0]].concat()),
        ("another mark", flipped(3)),
        ("another identity", flipped(20)),
        ("another length", flipped(50)),
        ("another checksum", flipped(60)),
        ("padding", flipped(3000)),
        ("first byte of the object", flipped(4096)),
        ("last byte of the object", flipped(good.len() - 1)),
        ("another model's object under this name", other),
        ("noise", (0..good.len()).map(|i| (i * 31 % 251) as u8).collect()),
    ];
    for (what, bytes) in cases {
        fs::write(&file, bytes).unwrap();
        let store = folder.store();
        assert_eq!(run(&session(&fresh(n), &store), n).unwrap(), (expected(1.0, n), true), "{what}");
        assert_eq!((store.report().refused, store.report().made, store.report().loaded), (1, 1, 0), "{what}");
        assert_eq!(fs::read(&file).unwrap(), good, "{what}: the file is right again");
    }
    // Something that is no file at all.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let store = folder.store();
    assert_eq!(run(&session(&fresh(n), &store), n).unwrap(), (expected(1.0, n), true));
    assert_eq!((store.report().refused, store.report().made), (1, 1));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    // proves: P2
    #[test]
    fn links_and_pipes_are_not_followed() {
        let folder = Folder::new("links");
        let n = 22;
        assert!(run(&session(&fresh(n), &folder.store()), n).unwrap().1);
        let file = folder.files().remove(0);
        let aside = folder.0.join("aside");
        fs::rename(&file, &aside).unwrap();
        symlink(&aside, &file).unwrap();
        let store = folder.store();
        assert_eq!(run(&session(&fresh(n), &store), n).unwrap(), (expected(1.0, n), true));
        assert_eq!((store.report().refused, store.report().loaded), (1, 0));
        assert!(fs::symlink_metadata(&file).unwrap().is_file() && aside.exists());
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        let store = folder.store();
        assert_eq!(
            run(&session(&fresh(n), &store), n).unwrap(),
            (expected(1.0, n), true),
            "a pipe never blocks"
        );
        assert_eq!(store.report().refused, 1);
    }

    // proves: P2
    #[test]
    fn folders_that_others_can_write_to_are_refused() {
        let folder = Folder::new("shared");
        fs::create_dir_all(&folder.0).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        let new = |path: &Path| {
            PreparedStore::new(StoreOptions { folder: Some(path.into()), ..StoreOptions::default() })
        };
        assert!(matches!(new(&folder.0), Err(CacheError::Shared { mode: 0o777, .. })));
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(new(&folder.0).is_ok());
        let link = folder.0.join("link");
        symlink(&folder.0, &link).unwrap();
        assert!(matches!(new(&link), Err(CacheError::NotAFolder { .. })));
        let file = folder.0.join("file");
        fs::write(&file, "x").unwrap();
        assert!(matches!(new(&file), Err(CacheError::NotAFolder { .. })));
        let made = folder.0.join("deep").join("new");
        new(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
    }

    // proves: P1
    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_but_time() {
        let folder = Folder::new("gone");
        let store = folder.store();
        fs::remove_dir(&folder.0).unwrap();
        assert_eq!(run(&session(&fresh(23), &store), 23).unwrap(), (expected(1.0, 23), true));
        assert_eq!(store.report().made, 1);
    }
}
