//! Every model that the `onnx` package carries.

use std::path::PathBuf;
use std::process::Command;

use heirloom_mem::Bytes;
use heirloom_proto::ModelProto;

/// The Python interpreter that `HEIRLOOM_PYTHON` names, or the one in the repository's `.venv`.
pub(crate) fn python() -> PathBuf {
    match std::env::var_os("HEIRLOOM_PYTHON") {
        Some(path) => path.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

/// The folder of the `onnx` package, or `None` with the reason printed.
fn onnx_package() -> Option<PathBuf> {
    let script = "import os, onnx; print(os.path.dirname(onnx.__file__))";
    let reason = match Command::new(python()).args(["-c", script]).output() {
        Ok(output) if output.status.success() => {
            return Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("skipped: no `onnx` package at `{}` (set HEIRLOOM_PYTHON): {reason}", python().display());
    None
}

/// All `.onnx` files below a folder.
fn models(folder: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "onnx") {
                found.push(path);
            }
        }
    }
    found
}

// proves: W2, W3
#[test]
fn every_model_of_the_onnx_package_survives_a_round_trip_byte_for_byte() {
    let Some(package) = onnx_package() else { return };
    let models = models(package);
    assert!(models.len() >= 100, "the package carries {} models", models.len());
    for path in models {
        let bytes = Bytes::map_file(&path).unwrap();
        let model =
            ModelProto::decode(bytes.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(model.to_bytes(), bytes, "{}", path.display());
        assert_eq!(model.to_canonical_bytes(), bytes, "{} encoded anew", path.display());
        assert_eq!(model.encoded_len(), bytes.len() as u64);
        assert_eq!(model.find_invalid_utf8(), None);
        assert!(model.graph().is_some(), "{}", path.display());
    }
}
