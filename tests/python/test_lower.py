"""Real models with state, bound and lowered again: ONNX Runtime, fed back by hand as the lowered model's list of pairs says,
agrees with Heirloom's stateful run."""

from __future__ import annotations

import json
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

import fetch  # noqa: E402
from models import Entry, entries  # noqa: E402
from reference import calls, distance, read_outputs, session, write_feeds  # noqa: E402

STATEFUL = [entry for entry in entries() if entry.state]


def stateful(entry: Entry, bound: Path, data: Path) -> list[dict[str, np.ndarray]]:
    with tempfile.TemporaryDirectory() as out:
        root = ["--external-root", entry.path.parent]
        free = ["--free-symbols"] if entry.free_symbols else []
        heirloom_cli.run("run", bound, "--data", data, "--save", out, *root, *free)
        return [read_outputs(Path(out), call) for call in range(entry.steps)]


# proves: GB7
@pytest.mark.parametrize("entry", STATEFUL, ids=lambda entry: entry.name)
def test_a_lowered_stateful_model_runs_in_onnx_runtime_as_ours_does(entry, tmp_path):
    fetch.fetch(entry)
    bound, lowered = tmp_path / "bound.onnx", tmp_path / "lowered.onnx"
    pairs = [argument for pair in entry.pairs for argument in ("--pair", *pair)]
    pairs += [argument for pair in entry.kept for argument in ("--keep-first", *pair)]
    heirloom_cli.run("bind", entry.path, *pairs, "--write", "--output", bound)
    root = ["--external-root", entry.path.parent]
    heirloom_cli.run("convert", bound, lowered, "--lower", "--inline", *root)
    onnx.checker.check_model(str(lowered), full_check=True)
    model = onnx.load(str(lowered))
    listed = json.loads({it.key: it.value for it in model.metadata_props}["heirloom.bindings"])
    assert len(listed) >= len(entry.pairs)
    assert not [it for it in model.graph.initializer if not it.name]

    engine = session(lowered, optimize=False, exact=True)
    fed = [feeds for feeds, _ in calls(entry, session(entry.path, optimize=False, exact=True))]
    write_feeds(entry, tmp_path / "data", [(feeds, {}) for feeds in fed])
    ours = stateful(entry, bound, tmp_path / "data")
    inputs = {port.name for port in engine.get_inputs()}
    names = [port.name for port in engine.get_outputs()]
    state, widest = {}, 0.0
    for call, feeds in enumerate(fed):
        now = {name: value for name, value in feeds.items() if name in inputs} | state
        outputs = dict(zip(names, engine.run(names, now), strict=True))
        state |= {pair["input"]: outputs[pair["output"]] for pair in listed}
        for name, expected in outputs.items():
            if name in ours[call]:
                widest = max(widest, distance(ours[call][name], np.asarray(expected)))
    tolerance = 0.05 if entry.quantized else entry.tolerance
    assert widest <= tolerance, widest
