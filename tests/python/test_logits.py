"""Logits of real models against the float computation, at every ISA level and for every way to feed a prompt."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

import heirloom_cli
from conftest import isa_levels, load_model

LEVELS = isa_levels()


@functools.cache
def our_logits(name: str, isa: str, chunk: int | None) -> np.ndarray:
    """Logits of the 40 ids, fed whole or `chunk` tokens at a time."""
    model = load_model(name)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "logits.npy"
        chunks = [] if chunk is None else ["--chunks", chunk]
        ids = ",".join(map(str, model.logits_ids))
        arguments = ["logits", model.onnx, "--tokens", ids, *chunks, "--out", out]
        heirloom_cli.run(*arguments, environment={"HEIRLOOM_ISA": isa})
        return np.load(out)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.sum(a * b, axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def gap_of_two_best(row: np.ndarray) -> float:
    second, first = np.partition(row, -2)[-2:]
    return float(first - second)


def assert_same_choices(ours: np.ndarray, reference: np.ndarray) -> None:
    """The bounds between two ways to compute the same: direction, and the first choice where it is clear."""
    assert cosines(ours, reference).min() >= 0.9995
    for position in np.flatnonzero(ours.argmax(axis=-1) != reference.argmax(axis=-1)):
        gap = gap_of_two_best(reference[position])
        assert gap < 0.3, f"another first choice at position {position}, where the two best are {gap:.3f} apart"


@pytest.mark.parametrize("isa", LEVELS)
def test_logits_agree_with_the_float_computation(model, isa):
    ours, reference = our_logits(model.name, isa, None), model.float_logits[0]
    assert ours.shape == reference.shape == (40, reference.shape[1])
    assert ours.dtype == np.float32
    each = cosines(ours, reference)
    assert each.min() >= 0.9995, f"cosine {each.min():.6f} at position {each.argmin()}"
    same = int(np.sum(ours.argmax(axis=-1) == reference.argmax(axis=-1)))
    assert same >= 38, f"the first choice agrees at {same} of 40 positions"


@pytest.mark.parametrize("chunk", [7, 1])
@pytest.mark.parametrize("isa", LEVELS)
def test_a_prompt_in_pieces_gives_the_logits_of_the_whole(model, isa, chunk):
    pieces, whole = our_logits(model.name, isa, chunk), our_logits(model.name, isa, None)
    if isa == "portable":
        np.testing.assert_allclose(pieces, whole, rtol=0, atol=1e-3)
    assert_same_choices(pieces, whole)


@pytest.mark.parametrize("isa", [level for level in LEVELS if level != "portable"])
def test_every_level_keeps_to_the_portable_one(model, isa):
    assert_same_choices(our_logits(model.name, isa, None), our_logits(model.name, "portable", None))
