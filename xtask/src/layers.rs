//! The direction of dependencies, from `[package.metadata] layer` of each crate, and where `unsafe` may stand.

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Crates that may hold `unsafe`; every other one forbids it in each of its crate roots. In `heirloom-python` the macros of
/// PyO3 write it; that its own code holds it in one file only is looked at by `tidy`.
const UNSAFE_ALLOWED: &[&str] = &["heirloom-cpu", "heirloom-mem", "heirloom-python", "heirloom-simd"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
    metadata: Option<PackageMetadata>,
}

#[derive(Deserialize)]
struct PackageMetadata {
    layer: Option<u32>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` is a normal dependency; else `dev` or `build`.
    kind: Option<String>,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: String,
}

pub(crate) fn run(_args: &[String]) -> Outcome {
    let packages = packages()?;
    let mut faults = Faults::default();
    check_direction(&packages, &mut faults);
    for package in &packages {
        if !UNSAFE_ALLOWED.contains(&package.name.as_str()) {
            check_forbids_unsafe(package, &mut faults)?;
        }
    }
    print_layers(&packages);
    faults.outcome()
}

fn packages() -> Result<Vec<Package>, Faults> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace::root())
        .output()?;
    if !output.status.success() {
        return Err(Faults::one(format!("`cargo metadata`: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| Faults::one(format!("`cargo metadata` printed what is not understood: {error}")))?;
    Ok(metadata.packages)
}

fn layer(package: &Package) -> Option<u32> {
    package.metadata.as_ref()?.layer
}

fn check_direction(packages: &[Package], faults: &mut Faults) {
    let layers: BTreeMap<&str, Option<u32>> =
        packages.iter().map(|package| (package.name.as_str(), layer(package))).collect();
    for package in packages {
        let Some(own) = layer(package) else {
            if package.name != "xtask" {
                faults.push(format!("crate `{}` has no `layer` in [package.metadata]", package.name));
            }
            continue;
        };
        let normal =
            package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev") && d.path.is_some());
        for dependency in normal {
            match layers.get(dependency.name.as_str()).copied().flatten() {
                Some(other) if other < own => {}
                Some(other) => faults.push(format!(
                    "crate `{}` (layer {own}) depends on `{}` (layer {other}); only lower layers may be used",
                    package.name, dependency.name
                )),
                None => faults.push(format!(
                    "crate `{}` depends on `{}`, which has no layer",
                    package.name, dependency.name
                )),
            }
        }
    }
}

fn check_forbids_unsafe(package: &Package, faults: &mut Faults) -> Outcome {
    let is_root = |target: &&Target| {
        target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "cdylib" | "proc-macro"))
    };
    for target in package.targets.iter().filter(is_root) {
        let text = std::fs::read_to_string(&target.src_path)?;
        if !text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
            let path = Path::new(&target.src_path);
            let shown = path.strip_prefix(workspace::root()).unwrap_or(path).display();
            faults.push(format!("{shown}: `#![forbid(unsafe_code)]` is missing"));
        }
    }
    Ok(())
}

fn print_layers(packages: &[Package]) {
    let mut rows: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for package in packages {
        if let Some(layer) = layer(package) {
            rows.entry(layer).or_default().push(&package.name);
        }
    }
    for (layer, names) in rows {
        println!("{layer}  {}", names.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, layer: Option<u32>, uses: &[(&str, Option<&str>)]) -> Package {
        let dependencies = uses
            .iter()
            .map(|(name, kind)| Dependency {
                name: (*name).to_owned(),
                kind: kind.map(str::to_owned),
                path: Some(String::new()),
            })
            .collect();
        let metadata = Some(PackageMetadata { layer });
        Package { name: name.to_owned(), dependencies, targets: Vec::new(), metadata }
    }

    fn faults(packages: &[Package]) -> String {
        let mut faults = Faults::default();
        check_direction(packages, &mut faults);
        faults.to_string()
    }

    #[test]
    fn a_lower_layer_may_be_used() {
        assert_eq!(faults(&[package("a", Some(0), &[]), package("b", Some(1), &[("a", None)])]), "");
    }

    #[test]
    fn an_equal_or_higher_layer_may_not_be_used_except_by_tests() {
        let low = package("low", Some(3), &[("high", Some("dev")), ("equal", None)]);
        let text = faults(&[low, package("equal", Some(3), &[]), package("high", Some(4), &[])]);
        assert!(text.contains("`low` (layer 3) depends on `equal` (layer 3)"), "{text}");
        assert!(!text.contains("`high`"), "{text}");
    }

    #[test]
    fn a_crate_without_a_layer_is_a_fault() {
        assert!(faults(&[package("a", None, &[])]).contains("crate `a` has no `layer`"));
    }
}
