//! Folders that vanish with the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// An empty folder of its own in the system's temporary folder, removed with all it holds when dropped.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes the folder.
    ///
    /// # Panics
    /// Where it cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("heirloom-test-{}-{number}", std::process::id()));
        // One left over from a process of the same id holds files of another test.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it and returns its path; folders in `name` are made.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        let parent = path.parent().expect("the path lies in the folder");
        std::fs::create_dir_all(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Default for TempFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_folders_are_apart_and_vanish_with_their_owner() {
        let (a, b) = (TempFolder::new(), TempFolder::new());
        assert_ne!(a.path(), b.path());
        let file = a.write("sub/file", b"x");
        assert!(file.exists());
        drop(a);
        assert!(!file.exists() && b.path().exists());
    }
}
