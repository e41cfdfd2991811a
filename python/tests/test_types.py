"""Types: the package and its examples check, and the stubs are what the native part is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def test_the_package_and_its_examples_have_no_type_errors(tmp_path, monkeypatch):
    # The sources, not what is installed: a folder of installed packages is no project that mypy can be given.
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    assert run("mypy", "--cache-dir", tmp_path, "python/heirloom", "python/examples") == ""


def test_the_stubs_have_the_names_and_parameters_of_the_native_part():
    assert run("mypy.stubtest", "heirloom._native") == ""


def test_a_wrong_use_is_found(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import heirloom\n\nheirloom.load("model.onnx").quantize(4)\n')
    assert 'incompatible type "int"; expected "str"' in run("mypy", "--cache-dir", tmp_path / "cache", wrong)
