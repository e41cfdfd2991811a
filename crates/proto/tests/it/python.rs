//! The Python interpreter whose `onnx` package is the oracle.

use std::path::PathBuf;
use std::process::Command;

/// The interpreter that `HEIRLOOM_PYTHON` names, or the one in the repository's `.venv`.
pub(crate) fn interpreter() -> PathBuf {
    match std::env::var_os("HEIRLOOM_PYTHON") {
        Some(path) => path.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

/// The folder of the `onnx` package, or `None` with the reason printed.
pub(crate) fn onnx_package() -> Option<PathBuf> {
    let script = "import os, onnx; print(os.path.dirname(onnx.__file__))";
    let reason = match Command::new(interpreter()).args(["-c", script]).output() {
        Ok(output) if output.status.success() => {
            return Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("skipped: no `onnx` package at `{}` (set HEIRLOOM_PYTHON): {reason}", interpreter().display());
    None
}

/// A script beside these tests.
pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name)
}

/// All `.onnx` files of the `onnx` package, in a fixed order; `None` where there is no package.
pub(crate) fn onnx_models() -> Option<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![onnx_package()?]);
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
    found.sort();
    Some(found)
}
