//! Where the workspace lies and what is tracked in it.

use crate::outcome::Faults;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The folder of build results.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A tracked file: its path relative to the root, with `/`, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether the file says in its first lines that a tool of ours wrote it.
    pub(crate) fn is_generated(&self) -> bool {
        self.text.lines().take(3).any(|line| line.contains("@generated"))
    }

    /// The crate folder (`crates/mem`, `xtask`) that the file belongs to.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        if self.path.starts_with("xtask/") {
            return Some("xtask");
        }
        let name = self.path.strip_prefix("crates/")?.split('/').next()?;
        Some(&self.path[.."crates/".len() + name.len()])
    }
}

/// Paths that git tracks, and those it would (new files that are not ignored), relative to the root.
/// A path that no longer exists is left out.
pub(crate) fn tracked() -> Result<Vec<String>, Faults> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .map_err(|error| Faults::one(format!("`git ls-files` could not be started: {error}")))?;
    if !output.status.success() {
        return Err(Faults::one(format!("`git ls-files`: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let mut paths: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Tracked text files (files that are no UTF-8 are left out) for which `wanted` holds.
pub(crate) fn sources(wanted: impl Fn(&str) -> bool) -> Result<Vec<Source>, Faults> {
    let mut sources = Vec::new();
    for path in tracked()?.into_iter().filter(|path| wanted(path)) {
        match std::fs::read_to_string(root().join(&path)) {
            Ok(text) => sources.push(Source { path, text }),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {}
            Err(error) => return Err(Faults::one(format!("{path}: {error}"))),
        }
    }
    Ok(sources)
}

/// A path under the root, with the root put in front.
pub(crate) fn at(path: &str) -> PathBuf {
    root().join(path)
}
