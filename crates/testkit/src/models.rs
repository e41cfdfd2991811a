//! Real models in the user's cache, where `heirloom fetch` puts them.

use std::path::PathBuf;

/// Heirloom's cache folder: `$HEIRLOOM_CACHE`, else `heirloom` in `$XDG_CACHE_HOME`, else in `~/.cache`.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HEIRLOOM_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("heirloom")))
        .or_else(|| Some(set("HOME")?.join(".cache").join("heirloom")))
}

/// The GGUF of a model by the name that `heirloom fetch` takes, where it is in the cache.
#[must_use]
pub fn cached_gguf(name: &str) -> Option<PathBuf> {
    let folder = cache_folder()?.join("models").join(name);
    let mut files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "gguf"))
}

/// [`cached_gguf`], for a test that is to fail without the model.
///
/// # Panics
/// Where the model is not in the cache; the message says how to fetch it.
#[must_use]
pub fn gguf(name: &str) -> PathBuf {
    cached_gguf(name).unwrap_or_else(|| panic!("the model is not in the cache: run `heirloom fetch {name}`"))
}
