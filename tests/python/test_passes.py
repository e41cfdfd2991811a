"""Every pass of `heirloom optimize --list` on every real model: what it keeps, that a second run finds nothing, and that the
model computes the same before and after, in Heirloom and in ONNX Runtime. A new pass joins by its line in the table."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import heirloom_cli

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "zoo"))

from models import Entry, entries  # noqa: E402
from reference import calls, distance, read_outputs, session, write_feeds  # noqa: E402

MODELS = [entry for entry in entries() if entry.path.exists()]

# Of the greatest value of an output, where a pass rounds otherwise; quantized models round to steps of 1/255.
ROUNDING = 2e-5
STEPS = 0.05


def optimize(source: Path, target: Path, *arguments: str) -> list[dict]:
    command = [str(heirloom_cli.binary()), "optimize", str(source), str(target), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@functools.cache
def passes() -> dict[str, bool]:
    """The names of all passes, and whether results stay the same to the bit."""
    listed = heirloom_cli.run("optimize", "--list").splitlines()
    return {line.split(":")[0]: "rounded otherwise" not in line for line in listed}


def beside(entry: Entry, folder: Path) -> Path:
    """A copy of a model with its files of payloads."""
    for _, path, _ in entry.files():
        shutil.copy(path, folder / path.name)
    return folder / entry.path.name


def ours(entry: Entry, model: Path, data: Path) -> list[dict[str, np.ndarray]]:
    with tempfile.TemporaryDirectory() as out:
        carried = [argument for pair in entry.pairs for argument in ("--carry", *pair)]
        carried += [argument for pair in entry.kept for argument in ("--carry-first", *pair)]
        free = ["--free-symbols"] if entry.free_symbols else []
        heirloom_cli.run("run", model, "--data", data, "--save", out, *carried, *free)
        return [read_outputs(Path(out), call) for call in range(entry.steps)]


def theirs(entry: Entry, model: Path, fed: list[dict] | None = None) -> list[tuple[dict, dict]]:
    return list(calls(entry, session(model, optimize=False, exact=True), fed))


def widest(before: list[dict], after: list[dict]) -> float:
    gap = 0.0
    for a, b in zip(before, after, strict=True):
        assert a.keys() == b.keys()
        gap = max([gap, *(distance(np.asarray(b[name]), np.asarray(a[name])) for name in a)])
    return gap


def interface(path: Path) -> tuple:
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    kept = [graph.input, graph.output, graph.quantization_annotation, model.metadata_props]
    return tuple([it.SerializeToString() for it in part] for part in kept)


# proves: GB5
@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.name)
def test_each_pass_and_all_together_keep_what_a_model_computes(entry, tmp_path):
    source = beside(entry, tmp_path)
    fed = theirs(entry, source)
    write_feeds(entry, tmp_path / "data", fed)
    feeds, by_runtime = [it for it, _ in fed], [it for _, it in fed]
    before = ours(entry, source, tmp_path / "data")
    target, again = tmp_path / "after.onnx", tmp_path / "again.onnx"
    runs = [([name], exact) for name, exact in passes().items()] + [(None, False)]
    for names, exact in runs:
        chosen = [argument for name in names or [] for argument in ("--pass", name)]
        reports = optimize(source, target, *chosen)
        if not reports:
            assert target.read_bytes() == source.read_bytes(), names
            continue
        assert interface(target) == interface(source), names
        assert optimize(target, again, *chosen) == [], names
        assert again.read_bytes() == target.read_bytes(), names
        # Folding computes with our kernels what ONNX Runtime computes with its own.
        allowed = STEPS if entry.quantized else max(ROUNDING, entry.tolerance)
        gap = widest(before, ours(entry, target, tmp_path / "data"))
        assert gap <= (0.0 if exact and names != ["fold"] else allowed), (names, gap)
        if any(part.startswith(("n-bits", "dequantize")) for part in names or []):
            continue  # Encoded weights are ours alone.
        gap = widest(by_runtime, [it for _, it in theirs(entry, target, feeds)])
        assert gap <= (0.0 if exact and names != ["fold"] else allowed), ("ONNX Runtime", names, gap)
