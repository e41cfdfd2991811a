//! `cargo xtask proto`: the message code of `heirloom-proto`, made from `crates/proto/onnx.proto`.

mod accessors;
mod emit;
mod message;
mod oneof;
mod schema;

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use std::io::Write;
use std::process::{Command, Stdio};

const PROTO: &str = "crates/proto/onnx.proto";
const GENERATED: &str = "crates/proto/src/generated";
/// The methods that the library of `cargo xtask size` holds.
const METHODS: &str = "crates/proto/size/src/methods.rs";

/// Writes the generated files; `--check` compares instead; `--descriptor FILE` writes the schema as a
/// `FileDescriptorSet`, which other protobuf implementations read.
pub(crate) fn run(args: &[String]) -> Outcome {
    let set = schema::compile(&workspace::at(PROTO))?;
    match args {
        [] => write(&set),
        [check] if check == "--check" => compare(&set),
        [option, path] if option == "--descriptor" => Ok(std::fs::write(path, schema::encode(&set))?),
        _ => Err(Faults::one("usage: cargo xtask proto [--check | --descriptor FILE]")),
    }
}

fn files(set: &schema::Descriptors) -> Result<Vec<(String, String)>, Faults> {
    let schema = schema::Schema::new(set)?;
    let methods = (METHODS.to_owned(), emit::method_list(&schema));
    let messages =
        emit::files(&schema)?.into_iter().map(|(name, text)| (format!("{GENERATED}/{name}.rs"), text));
    messages.chain([methods]).map(|(path, text)| Ok((path, format_rust(&text)?))).collect()
}

fn write(set: &schema::Descriptors) -> Outcome {
    for (path, text) in files(set)? {
        std::fs::write(workspace::at(&path), text)?;
    }
    Ok(())
}

fn compare(set: &schema::Descriptors) -> Outcome {
    let mut faults = Faults::default();
    let files = files(set)?;
    for (path, text) in &files {
        if std::fs::read_to_string(workspace::at(path)).ok().as_ref() != Some(text) {
            faults.push(format!("{path} is not what `{PROTO}` gives; run `cargo xtask proto`"));
        }
    }
    for entry in std::fs::read_dir(workspace::at(GENERATED))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !files.iter().any(|(path, _)| path.ends_with(&format!("/{name}"))) {
            faults.push(format!("{GENERATED}/{name} is not generated; remove it"));
        }
    }
    faults.outcome()
}

fn format_rust(text: &str) -> Result<String, Faults> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(workspace::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Faults::one(format!("`rustfmt` could not be started: {error}")))?;
    if let Some(mut stdin) = rustfmt.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err(Faults::one(format!("`rustfmt` refuses the generated code:\n{text}")));
    }
    String::from_utf8(output.stdout).map_err(|error| Faults::one(error.to_string()))
}
