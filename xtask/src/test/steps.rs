//! The steps of `cargo xtask test`. A step is its commands and who writes their output.

use super::reading::Reading;
use crate::outcome::Faults;
use crate::workspace;
use std::path::PathBuf;
use std::process::Command;

#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) reading: Reading,
    pub(super) commands: fn() -> Result<Vec<Command>, Faults>,
}

const fn step(
    name: &'static str,
    reading: Reading,
    commands: fn() -> Result<Vec<Command>, Faults>,
    about: &'static str,
) -> Step {
    Step { name, about, reading, commands }
}

pub(super) const STEPS: &[Step] = &[
    step("fmt", Reading::Check, || xtask(&["fmt", "--check"]), "formatting of every Rust file"),
    step("layers", Reading::Check, || xtask(&["layers"]), "direction of dependencies, unsafe policy"),
    step("tidy", Reading::Check, || xtask(&["tidy"]), "rules of our own"),
    step("requirements", Reading::Check, || xtask(&["requirements"]), "each due requirement has its tests"),
    step(
        "proto",
        Reading::Check,
        || xtask(&["proto", "--check"]),
        "generated messages are those of onnx.proto",
    ),
    step("docs", Reading::Check, || xtask(&["docs"]), "links and commands in the documentation"),
    step(
        "xtask",
        Reading::Rust,
        || Ok(vec![cargo(XTASK_TESTS)]),
        "tests of this tool, in the profile it is built with",
    ),
    step("clippy", Reading::Check, || Ok(vec![cargo(CLIPPY)]), "lints, warnings refused"),
    step("venv", Reading::Check, venv, "Python environment of the tests"),
    step("release", Reading::Check, || Ok(vec![cargo(RELEASE)]), "the program, optimized"),
    step("models", Reading::Check, models, "the real models, fetched by the program"),
    step("rust", Reading::Rust, rust_tests, "Rust tests"),
    step("memcheck", Reading::Rust, memcheck, "memory and state tests under valgrind, portable and AVX2"),
    step("doc-tests", Reading::Rust, || Ok(vec![cargo(DOC_TESTS)]), "examples in the Rust documentation"),
    step("deny", Reading::Check, deny, "licences, bans and sources of dependencies"),
    step("size", Reading::Check, || xtask(&["size", "--check"]), "what heirloom-proto costs as a library"),
    step(
        "conformance",
        Reading::Check,
        conformance,
        "the ONNX standard's backend suite, the newest and those of older versions",
    ),
    step("wheel", Reading::Check, wheel, "the Python package, optimized, into the tests' environments"),
    step("package", Reading::Pytest, package_tests, "tests of the Python package, with its examples"),
    step("torch", Reading::Pytest, torch_tests, "the same with PyTorch, on the system's Python"),
    step("python", Reading::Pytest, python_tests, "Python tests, with real models and the oracles"),
];

const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
const DOC_TESTS: &[&str] = &["test", "--workspace", "--exclude", "xtask", "--doc", "--no-fail-fast"];
const XTASK_TESTS: &[&str] = &["test", "--package", "xtask", "--profile", "xtask"];
const RELEASE: &[&str] = &["build", "--release", "--package", "heirloom-cli"];
const CARGO_DENY_VERSION: &str = "0.20.2";
const MODELS: &[&str] = &["smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct", "gemma3-270m"];
/// What the tests with PyTorch need beside what the system's Python has.
const TORCH_REQUIREMENTS: &[&str] = &["ml_dtypes==0.5.4", "pytest==9.2.0"];
const PYTHON_REQUIREMENTS: &str = "tests/python/requirements.txt";

fn command(program: impl Into<PathBuf>, args: &[&str]) -> Command {
    let mut command = Command::new(program.into());
    command.args(args);
    command
}

fn cargo(args: &[&str]) -> Command {
    command("cargo", args)
}

fn xtask(args: &[&str]) -> Result<Vec<Command>, Faults> {
    Ok(vec![command(std::env::current_exe()?, args)])
}

fn heirloom() -> PathBuf {
    workspace::target().join("release").join("heirloom")
}

fn has_nextest() -> bool {
    cargo(&["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}

/// With nextest where it is installed, else with `cargo test`.
fn rust_tests() -> Result<Vec<Command>, Faults> {
    let tests = if has_nextest() {
        let levels =
            ["--status-level", "fail", "--final-status-level", "fail", "--failure-output", "immediate"];
        let mut tests = cargo(&["nextest", "run", "--workspace", "--exclude", "xtask", "--no-fail-fast"]);
        tests.args(levels);
        tests
    } else {
        cargo(&["test", "--workspace", "--exclude", "xtask", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    // The wire layer's tests ask the `onnx` package.
    Ok(vec![with_python(tests)])
}

/// Tests of what holds, shares and frees memory under valgrind (a package of every distribution), which stops at the first
/// read or write outside of what is allocated, or of what was freed. The tests run at the portable level and at this
/// processor's best that valgrind knows, AVX2. Left out are those that measure time or go on for very long.
fn memcheck() -> Result<Vec<Command>, Faults> {
    const RUNNER: &str = "valgrind --quiet --error-exitcode=9 --fair-sched=try";
    const SLOW: &[&str] = &["u6_", "u55", "u64", "every_changed", "hostile"];
    let states = ["append::", "forms::", "snapshots::", "states::", "structs::"];
    let suites: [(&str, &[&str], &[&str]); 3] = [
        ("heirloom-mem", &["--test", "it"], &["append", "bytes", "pool", "segments", "tensor"]),
        ("heirloom-runtime", &["--test", "it"], &states),
        ("heirloom-cpu", &["--lib"], &["attention"]),
    ];
    let mut commands = Vec::new();
    for level in ["portable", "avx2"] {
        for (package, target, filters) in suites {
            let mut tests = cargo(&["test", "--quiet", "--package", package]);
            tests.args(target).arg("--").args(filters);
            SLOW.iter().for_each(|slow| _ = tests.args(["--skip", slow]));
            tests.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER).env("HEIRLOOM_ISA", level);
            commands.push(tests);
        }
    }
    Ok(commands)
}

fn deny() -> Result<Vec<Command>, Faults> {
    let folder = workspace::target().join("cargo-deny");
    let program = folder.join("bin").join("cargo-deny");
    let mut commands = Vec::new();
    if !program.exists() {
        let mut install =
            cargo(&["install", "--locked", "--quiet", "cargo-deny", "--version", CARGO_DENY_VERSION]);
        install.arg("--root").arg(folder);
        commands.push(install);
    }
    commands.push(command(program, &["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]));
    Ok(commands)
}

fn models() -> Result<Vec<Command>, Faults> {
    Ok(MODELS.iter().map(|name| with_python(command(heirloom(), &["fetch", name]))).collect())
}

/// Lets the program fetch through the pip of the tests' environment.
fn with_python(mut command: Command) -> Command {
    command.env("HEIRLOOM_PYTHON", venv_python());
    command
}

fn venv_python() -> PathBuf {
    venv_folder().join("bin").join("python")
}

/// The folder of the Python environment: `$HEIRLOOM_VENV`, which is then used as it is, else `.venv`.
fn venv_folder() -> PathBuf {
    std::env::var_os("HEIRLOOM_VENV").map_or_else(|| workspace::at(".venv"), PathBuf::from)
}

fn venv() -> Result<Vec<Command>, Faults> {
    let folder = venv_folder();
    let stamp = folder.join("heirloom-requirements.txt");
    let wanted = std::fs::read_to_string(workspace::at(PYTHON_REQUIREMENTS))?;
    let installed = std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted);
    if std::env::var_os("HEIRLOOM_VENV").is_some() || installed {
        return Ok(Vec::new());
    }
    let mut make = command("python3", &["-m", "venv"]);
    make.arg(&folder);
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        PYTHON_REQUIREMENTS,
    ];
    let mut note = command("cp", &[PYTHON_REQUIREMENTS]);
    note.arg(stamp);
    Ok(vec![make, command(venv_python(), &pip), note])
}

/// Versions of the onnx package that ship their suite's cases as files.
const OLD_SUITES: &str = "1.7.0,1.10.2,1.13.1,1.16.2";

fn conformance() -> Result<Vec<Command>, Faults> {
    let suite = workspace::target().join("conformance");
    let mut generate = command(venv_python(), &["tests/conformance/generate.py"]);
    generate.arg(&suite).args(["--wheels", OLD_SUITES]);
    let mut run = cargo(&["run", "--quiet", "--package", "heirloom", "--example", "conformance", "--"]);
    run.arg(suite);
    run.args(["--list", "tests/conformance/not-passed.txt", "--page", "docs/operators.md"]);
    Ok(vec![generate, run])
}

/// The folder of wheels.
fn wheels() -> PathBuf {
    workspace::target().join("wheels")
}

/// The environment of the tests with PyTorch: the system's packages (Debian's `python3-torch` and its NumPy) and few more.
fn torch_python() -> PathBuf {
    workspace::target().join("torch-venv").join("bin").join("python")
}

/// The system's Python, which Debian's packages belong to; `$HEIRLOOM_TORCH_PYTHON` names another one with PyTorch.
fn system_python() -> PathBuf {
    std::env::var_os("HEIRLOOM_TORCH_PYTHON").map_or_else(|| PathBuf::from("/usr/bin/python3"), PathBuf::from)
}

fn pip(python: PathBuf, args: &[&str]) -> Command {
    let mut pip = command(python, &["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    pip.args(args);
    pip
}

fn wheel() -> Result<Vec<Command>, Faults> {
    let mut build = pip(venv_python(), &["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]);
    build.arg(wheels()).arg(".");
    let scripts = venv_python().parent().map(PathBuf::from).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(scripts).chain(std::env::split_paths(&path));
    build.env("PATH", std::env::join_paths(path).map_err(|error| Faults::one(error.to_string()))?);
    let install = |python: PathBuf| {
        let mut install =
            pip(python, &["install", "--no-deps", "--no-index", "--force-reinstall", "--find-links"]);
        install.arg(wheels()).arg("onnx-heirloom");
        install
    };
    let mut commands = vec![build, install(venv_python())];
    if system_python().exists() {
        if !torch_python().exists() {
            let mut make = command(system_python(), &["-m", "venv", "--system-site-packages"]);
            make.arg(workspace::target().join("torch-venv"));
            let mut needs = pip(torch_python(), &["install"]);
            needs.args(TORCH_REQUIREMENTS);
            commands.extend([make, needs]);
        }
        commands.push(install(torch_python()));
    }
    Ok(commands)
}

fn pytest(python: PathBuf, tests: &[&str]) -> Command {
    let mut pytest =
        command(python, &["-m", "pytest", "-q", "-rfEs", "--tb=short", "-p", "no:cacheprovider"]);
    pytest.args(tests).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest
}

fn package_tests() -> Result<Vec<Command>, Faults> {
    Ok(vec![with_python(pytest(venv_python(), &["python/tests"]))])
}

fn torch_tests() -> Result<Vec<Command>, Faults> {
    Ok(vec![pytest(torch_python(), &["python/tests/test_torch.py", "python/tests/test_zero_copy.py"])])
}

fn python_tests() -> Result<Vec<Command>, Faults> {
    let pytest = ["-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", "tests/python"];
    let mut tests = with_python(command(venv_python(), &pytest));
    tests.env("HEIRLOOM_BIN", heirloom()).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(vec![tests])
}
