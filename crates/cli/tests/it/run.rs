//! Running the command in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary folder, removed with everything in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("heirloom-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command, with a cache folder of its own.
pub(crate) fn heirloom(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heirloom"));
    command.env("HEIRLOOM_CACHE", cache);
    command
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
