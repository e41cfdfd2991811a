//! Prepared objects in a folder, for later processes.
//!
//! An object is a file that is named after the digest of its identity. Its first page holds a mark, that digest, the
//! object's length and the object's own digest; the object begins at the second page and is used in the mapping. A file
//! whose any part is not exactly right is removed, and the object made anew.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use heirloom_mem::Bytes;
use sha2::{Digest, Sha256};

const MARK: &[u8; 16] = b"heirloom prep 1\n";
const PAGE: usize = 4096;
const HEADER: usize = MARK.len() + 32 + 8 + 32;

/// Why a folder cannot hold prepared objects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The folder cannot be made or looked at.
    #[error("cannot keep prepared objects in `{}`: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The path is a file or a link.
    #[error("cannot keep prepared objects in `{}`: it is no folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Other users may write to the folder.
    #[error("`{}` may be written by other users (mode {mode:o}); prepared objects need a folder of one's own", path.display())]
    Shared {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// What became of a look into the folder.
pub(super) enum Found {
    Object(Bytes),
    Nothing,
    /// There was a file, and it was not right.
    Refused,
}

/// A folder of objects.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder where it is missing.
    pub(super) fn new(path: &Path) -> Result<Folder, CacheError> {
        let io = |source| CacheError::Io { path: path.into(), source };
        make(path).map_err(io)?;
        let meta = fs::symlink_metadata(path).map_err(io)?;
        if !meta.is_dir() {
            return Err(CacheError::NotAFolder { path: path.into() });
        }
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions());
            if mode & 0o022 != 0 {
                return Err(CacheError::Shared { path: path.into(), mode: mode & 0o777 });
            }
        }
        Ok(Folder(path.into()))
    }

    fn file(&self, digest: &[u8; 32]) -> PathBuf {
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.join(name + ".prepared")
    }

    /// The object of this identity, `bytes` long.
    pub(super) fn read(&self, digest: &[u8; 32], bytes: usize) -> Found {
        let path = self.file(digest);
        // A link, a device or a pipe is nothing that this store wrote, and opening it might wait for ever.
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Ok(meta) if meta.is_file() && Some(meta.len()) == PAGE.checked_add(bytes).map(|n| n as u64) => {}
            _ => return self.refuse(&path),
        }
        let object = Bytes::map_file(&path).ok().and_then(|file| object(&file, digest, bytes));
        object.map_or_else(|| self.refuse(&path), Found::Object)
    }

    fn refuse(&self, path: &Path) -> Found {
        // Where it cannot be removed (a folder of that name, say) the object is made anew each time.
        drop(fs::remove_file(path));
        Found::Refused
    }

    /// Keeps an object; whether that worked.
    pub(super) fn write(&self, digest: &[u8; 32], object: &[u8]) -> bool {
        let mut page = Vec::with_capacity(PAGE);
        page.extend(MARK);
        page.extend(digest);
        page.extend((object.len() as u64).to_le_bytes());
        page.extend(Sha256::digest(object));
        page.resize(PAGE, 0);
        let write = |file: &mut fs::File| file.write_all(&page).and_then(|()| file.write_all(object));
        heirloom_proto::replace(&self.file(digest), write).is_ok()
    }
}

#[cfg(unix)]
fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}

#[cfg(not(unix))]
fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// The object in a file, where the file is right in every part.
fn object(file: &Bytes, digest: &[u8; 32], bytes: usize) -> Option<Bytes> {
    let object = file.get(PAGE..)?;
    let mut expected = Vec::with_capacity(HEADER);
    expected.extend(MARK);
    expected.extend(digest);
    expected.extend((bytes as u64).to_le_bytes());
    expected.extend(Sha256::digest(&object));
    let page = file.get(..PAGE)?;
    (object.len() == bytes && page[..HEADER] == expected && page[HEADER..].iter().all(|&b| b == 0))
        .then_some(object)
}
