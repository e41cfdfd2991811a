//! What no committed file holds: folders of one machine, hosts of package registries, work left open.

use crate::outcome::Faults;
use crate::workspace::Source;

/// A lock file names the registry of each package by design.
const LOCK_FILE: &str = "Cargo.lock";

// Written in two halves, so that this file passes its own rule.
const PATHS: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("deb.debian", ".org"),
    concat!("proxy.golang", ".org"),
];
const LEFT_OPEN: &[&str] =
    &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(source: &Source, faults: &mut Faults) {
    if source.path.rsplit('/').next() == Some(LOCK_FILE) {
        return;
    }
    for (index, line) in source.text.lines().enumerate() {
        let found = |words: &'static [&'static str]| words.iter().find(|word| line.contains(**word));
        if let Some(path) = found(PATHS) {
            faults.at(&source.path, index + 1, format_args!("`{path}` is a folder of one machine"));
        }
        if let Some(host) = found(HOSTS) {
            faults.at(
                &source.path,
                index + 1,
                format_args!("`{host}` is the host of a registry; its client knows it"),
            );
        }
        if source.path.ends_with(".rs") || source.path.ends_with(".py") {
            if let Some(word) = found(LEFT_OPEN) {
                faults.at(&source.path, index + 1, format_args!("`{word}` leaves work open"));
            }
            if line.trim() == concat!("#[ign", "ore]") {
                faults.at(&source.path, index + 1, "an ignored test says why: `#[ignore = \"reason\"]`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults_of;
    use super::*;

    #[test]
    fn machine_paths_and_registry_hosts_are_faults_everywhere_but_in_the_lock_file() {
        for word in PATHS.iter().chain(HOSTS) {
            let line = format!("see {word}x\n");
            assert!(faults_of(check, "README.md", &line).contains("README.md:1"), "{word}");
            assert_eq!(faults_of(check, LOCK_FILE, &line), "", "{word}");
        }
    }

    #[test]
    fn work_left_open_is_a_fault_in_sources() {
        for word in LEFT_OPEN {
            assert!(faults_of(check, "crates/mem/src/a.rs", word).contains("leaves work open"), "{word}");
            assert_eq!(faults_of(check, "CHANGELOG.md", word), "", "{word}");
        }
    }
}
