"""A lowered model in ONNX Runtime, fed back by hand, beside our stateful run."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

import heirloom_cli

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


# proves: GB7
def test_convert_refuses_what_standard_onnx_cannot_hold(smollm2, tmp_path):
    done = subprocess.run(
        [heirloom_cli.binary(), "convert", smollm2.onnx, tmp_path / "out.onnx", "--standard"],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 1
    assert "the persistent binding `past_key_values.0.key <- present.0.key`" in done.stderr
    assert not (tmp_path / "out.onnx").exists()


# proves: GB7
def test_lowered_smollm2_runs_in_onnxruntime_as_our_stateful_run(smollm2, tmp_path):
    lowered = tmp_path / "lowered.onnx"
    subprocess.run(
        [heirloom_cli.binary(), "convert", smollm2.onnx, lowered, "--lower", "--external"],
        check=True, capture_output=True,
    )
    onnx.checker.check_model(str(lowered), full_check=True)
    model = onnx.load(str(lowered), load_external_data=False)
    pairs = json.loads({entry.key: entry.value for entry in model.metadata_props}["heirloom.bindings"])
    session = ort.InferenceSession(str(lowered), providers=["CPUExecutionProvider"])
    ids, state = smollm2.logits_ids[:12], {}
    for pair in pairs:
        value = next(it for it in session.get_inputs() if it.name == pair["input"])
        shape = [extent if isinstance(extent, int) else 1 if axis == 0 else 0 for axis, extent in enumerate(value.shape)]
        state[pair["input"]] = np.zeros(shape, np.float16)
    names, rows = [it.name for it in session.get_outputs()], []
    for token in ids:
        feeds = {"input_ids": np.array([[token]], np.int64), "logits_to_keep": np.array(0, np.int64), **state}
        outputs = dict(zip(names, session.run(names, feeds)))
        rows.append(outputs["logits"][0, -1])
        state = {pair["input"]: outputs[pair["output"]] for pair in pairs}
    theirs = np.stack(rows)
    out = tmp_path / "logits.npy"
    subprocess.run(
        [heirloom_cli.binary(), "logits", smollm2.onnx, "--tokens", ",".join(map(str, ids)), "--chunks", "1", "--out", out],
        check=True, capture_output=True,
    )
    ours = np.load(out)
    cosine = (ours * theirs).sum(-1) / np.linalg.norm(ours, axis=-1) / np.linalg.norm(theirs, axis=-1)
    assert cosine.min() > 0.9999, cosine
    assert (ours.argmax(-1) == theirs.argmax(-1)).all()
