//! `cargo xtask size`: what the wire layer costs as a shared library (requirement N1).

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

mod elf;

use elf::Library;

const CRATE: &str = "crates/proto/size";
/// Shared libraries that every Linux system has.
const ALLOWED: &[&str] = &["libc.so.", "libgcc_s.so.", "ld-linux"];

struct Limit {
    what: &'static str,
    of: fn(&Library) -> u64,
    most: u64,
    most_for_extensions: u64,
}

const LIMITS: &[Limit] = &[
    Limit {
        what: "stripped bytes",
        of: |library| library.bytes,
        // Half of what N1 allows.
        most: 1_193_944 / 2,
        most_for_extensions: 128 << 10,
    },
    Limit { what: ".text bytes", of: |library| library.text, most: 822_634, most_for_extensions: 96 << 10 },
    Limit { what: "dynamic symbols", of: |library| library.symbols, most: 63, most_for_extensions: 64 },
];

/// Builds the library with and without the contract's messages, prints sizes, and fails above a limit.
// proves: N1
pub(crate) fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| arg != "--check") {
        return Err(Faults::one("usage: cargo xtask size [--check]"));
    }
    let with = build(true)?;
    let without = build(false)?;
    let mut faults = Faults::default();
    println!("{:18}{:>12}{:>12}{:>14}{:>12}", "heirloom-proto", "size", "limit", "extensions", "limit");
    for limit in LIMITS {
        let (size, extensions) = ((limit.of)(&with), (limit.of)(&with).saturating_sub((limit.of)(&without)));
        println!(
            "{:18}{size:>12}{:>12}{extensions:>14}{:>12}",
            limit.what, limit.most, limit.most_for_extensions
        );
        if size > limit.most {
            faults.push(format!("{}: {size} is more than {}", limit.what, limit.most));
        }
        if extensions > limit.most_for_extensions {
            faults.push(format!(
                "{} of the extension messages: {extensions} is more than {}",
                limit.what, limit.most_for_extensions
            ));
        }
    }
    println!("needs {}", with.needed.join(", "));
    for name in with.needed.iter().filter(|name| !ALLOWED.iter().any(|allowed| name.starts_with(allowed))) {
        faults.push(format!("the library needs `{name}`; only libc, libgcc_s and ld-linux are allowed"));
    }
    faults.outcome()
}

fn build(with_extensions: bool) -> Result<Library, Faults> {
    // Two folders, so that neither build undoes the other.
    let target: PathBuf = workspace::at("target/size").join(if with_extensions { "with" } else { "without" });
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--target-dir"]).arg(&target);
    cargo.arg("--manifest-path").arg(workspace::at(CRATE).join("Cargo.toml"));
    if !with_extensions {
        cargo.arg("--no-default-features");
    }
    let status =
        cargo.status().map_err(|error| Faults::one(format!("`cargo` could not be started: {error}")))?;
    if !status.success() {
        return Err(Faults::one(format!("{CRATE} does not build")));
    }
    let path = target.join("release/libheirloom_proto_size.so");
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| Faults::one(format!("{}: {error}", path.display())))?;
    Library::read(&bytes).ok_or_else(|| Faults::one(format!("{} is no 64-bit ELF library", path.display())))
}
