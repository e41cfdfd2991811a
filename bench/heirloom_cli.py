"""Heirloom's own program as the benchmarks and recorders use it: where it is, where models are, what it prints."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The names that `heirloom fetch` knows, by the short names used here.
MODELS = {
    "smollm2": "smollm2-135m-instruct",
    "qwen": "qwen2.5-coder-0.5b-instruct",
    "gemma3": "gemma3-270m",
}


def cache_folder() -> Path:
    """Heirloom's cache: `$HEIRLOOM_CACHE`, else `heirloom` in the user's cache folder."""
    if named := os.environ.get("HEIRLOOM_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "heirloom"


def binary() -> Path:
    """`$HEIRLOOM_BIN`, else the release build, which is made if it is not there."""
    if named := os.environ.get("HEIRLOOM_BIN"):
        return Path(named)
    path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "heirloom"
    if not path.exists():
        subprocess.run(["cargo", "build", "--release", "--package", "heirloom-cli"], cwd=ROOT, check=True)
    return path


def run(*arguments: object, environment: dict[str, str] | None = None) -> str:
    """What the program prints on standard output; its errors are shown and end in `RuntimeError`."""
    command = [str(binary()), *map(str, arguments)]
    full = {**os.environ, **(environment or {})}
    done = subprocess.run(command, env=full, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def gguf_file(model: str) -> Path:
    """The GGUF of a model by its short name, fetched where it is not in the cache."""
    return Path(run("fetch", MODELS[model]).strip().splitlines()[-1])


def overlay(gguf: Path, *options: str) -> Path:
    """The `.onnx` that `heirloom import` writes for a GGUF."""
    return Path(run("import", gguf, *options).strip().splitlines()[-1])


def generate_report(model: Path, *arguments: object, environment: dict[str, str] | None = None) -> dict:
    """The report that ends `heirloom generate --json`."""
    last = run("generate", model, "--json", *arguments, environment=environment).strip().splitlines()[-1]
    return json.loads(last)["report"]
