//! Loading and saving files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heirloom_mem::Bytes;
use heirloom_proto::{Error, ModelProto, Problem, SaveOptions, load, save};

use crate::model::{full_model, tensor};

/// A folder of its own for each test, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("heirloom-proto-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[test]
fn a_saved_model_loads_as_it_was_and_leaves_no_other_file() {
    let folder = Folder::new();
    let path = folder.path("model.onnx");
    save(&full_model(), &path, &SaveOptions::default()).unwrap();
    assert_eq!(folder.names(), ["model.onnx"]);
    assert_eq!(load(&path).unwrap(), full_model());
}

// proves: W3
#[test]
fn saving_onto_the_file_that_the_model_is_mapped_from_works() {
    let folder = Folder::new();
    let path = folder.path("model.onnx");
    let mut model = full_model();
    model.graph_mut().initializer_mut().push(tensor(
        "large",
        &[1 << 20],
        (0..1 << 20).map(|i| i as u8).collect(),
    ));
    save(&model, &path, &SaveOptions::default()).unwrap();
    let mut loaded = load(&path).unwrap();
    for round in 0..3 {
        loaded.graph_mut().set_name(&format!("a longer name each time {}", "x".repeat(round * 5000)));
        save(&loaded, &path, &SaveOptions::default()).unwrap();
        let again = load(&path).unwrap();
        assert_eq!(again, loaded);
        let large = again.graph().unwrap().initializer().last().unwrap().raw_data().unwrap().clone();
        assert!(large.iter().enumerate().all(|(i, byte)| *byte == i as u8));
    }
    assert_eq!(folder.names(), ["model.onnx"]);
}

#[test]
fn a_failed_save_leaves_the_target_as_it_was() {
    let folder = Folder::new();
    let path = folder.path("model.onnx");
    save(&full_model(), &path, &SaveOptions::default()).unwrap();
    let before = std::fs::read(&path).unwrap();
    // The target's name is taken by a folder that is not empty: the rename fails after all was written.
    let taken = folder.path("taken.onnx");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("file"), b"").unwrap();
    let error = save(&full_model(), &taken, &SaveOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Write { path, .. } if *path == taken), "{error}");
    assert_eq!(folder.names(), ["model.onnx", "taken.onnx"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let nowhere = folder.path("missing/model.onnx");
    assert!(matches!(save(&full_model(), &nowhere, &SaveOptions::default()), Err(Error::Write { .. })));
}

#[cfg(unix)]
#[test]
fn saving_keeps_the_permissions_of_the_file_it_replaces() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.path("model.onnx");
    save(&full_model(), &path, &SaveOptions::default()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    save(&full_model(), &path, &SaveOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_unreadable_file_is_named_in_the_error() {
    let folder = Folder::new();
    let path = folder.path("damaged.onnx");
    std::fs::write(&path, [0x3a, 9, 1]).unwrap();
    let error = load(&path).unwrap_err();
    assert!(error.to_string().contains("damaged.onnx"), "{error}");
    assert!(error.to_string().contains("`ModelProto` at byte 0"), "{error}");
    let Error::Decode { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.problem(), &Problem::Truncated { needed: 9, left: 1 });
    assert!(matches!(load(&folder.path("missing.onnx")), Err(Error::Map(_))));
    assert!(matches!(load(folder.root()), Err(Error::Map(_))));
    std::fs::write(&path, []).unwrap();
    assert_eq!(load(&path).unwrap(), ModelProto::decode(Bytes::empty()).unwrap());
}
