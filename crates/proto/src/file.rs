//! Models as files: mapped when loaded, replaced as a whole when saved.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heirloom_mem::Bytes;

use crate::check::check_payloads;
use crate::{Error, ModelProto};

/// The largest file that every ONNX reader opens, in bytes.
pub const READABLE_BY_ALL: u64 = 0x7fff_ffff;

/// Maps a model file and reads its structure. Payloads stay in the mapping; the file must not be rewritten in place
/// while the model lives ([`save`] never does that).
///
/// # Errors
/// When the file cannot be mapped, is no model, or a payload breaks the rules of [`check_payloads`].
pub fn load(path: &Path) -> Result<ModelProto, Error> {
    let bytes = Bytes::map_file(path)?;
    let model =
        ModelProto::decode(bytes).map_err(|source| Error::Decode { file: Some(path.into()), source })?;
    check_payloads(&model)?;
    Ok(model)
}

/// How to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveOptions {
    /// Write files of more than 2 GiB, which other ONNX readers cannot open.
    pub allow_over_2gib: bool,
}

impl SaveOptions {
    /// The same with another `allow_over_2gib`.
    pub fn allow_over_2gib(self, allow: bool) -> SaveOptions {
        SaveOptions { allow_over_2gib: allow }
    }
}

/// Writes a model to a file beside `path`, makes it durable, and renames it to `path`: at every moment either the
/// old file is there or the new one, and the file that the model was loaded from may be the target. Payloads go
/// from where they lie to the file. External payloads are not touched.
///
/// # Errors
/// Before a byte is written: when the file would exceed 2 GiB and that is not allowed, or a payload breaks the rules
/// of [`check_payloads`]. And those of the file system; the target is then as it was.
pub fn save(model: &ModelProto, path: &Path, options: &SaveOptions) -> Result<(), Error> {
    check_payloads(model)?;
    check_size(model, path, options)?;
    replace(path, |file| model.encode_to(file)).map_err(|source| Error::Write { path: path.into(), source })
}

/// Whether [`save`] would refuse the model for its size. Nothing is written.
///
/// # Errors
/// When the file would exceed 2 GiB and that is not allowed.
pub fn check_size(model: &ModelProto, path: &Path, options: &SaveOptions) -> Result<(), Error> {
    let bytes = model.encoded_len();
    if bytes > READABLE_BY_ALL && !options.allow_over_2gib {
        return Err(Error::Over2Gib { path: path.into(), bytes, limit: READABLE_BY_ALL });
    }
    Ok(())
}

/// Writes a new file beside `path` and renames it to `path` once it is complete and durable; a file that is mapped
/// may be replaced so.
///
/// # Errors
/// Those of `write` and of the file system; the target is then as it was.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (mut file, temporary) = create_beside(path)?;
    let outcome = write(&mut file).and_then(|()| {
        if let Ok(meta) = fs::metadata(path) {
            file.set_permissions(meta.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if outcome.is_err() {
        // The first error is the one to report.
        drop(fs::remove_file(&temporary));
        return outcome;
    }
    sync_folder(path)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A new file in the folder of `path`, with a name that nobody else uses.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    loop {
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.{}.tmp", std::process::id(), NEXT.fetch_add(1, Relaxed)));
        let temporary = folder(path).join(temporary);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
