"""What the tests share: Heirloom's program, the real models, and the float computation of their logits."""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import heirloom_cli  # noqa: E402
from float_reference import FloatReference  # noqa: E402

MODELS = ["smollm2", "qwen"]


@dataclass(frozen=True)
class Model:
    """A real model: its GGUF, the overlay that `heirloom import` wrote beside it, and what llama.cpp said of it."""

    name: str
    gguf: Path
    onnx: Path
    recorded: dict

    @property
    def logits_ids(self) -> list[int]:
        """The 40 token ids whose logits are compared."""
        return self.recorded["logits"]["ids"]

    @functools.cached_property
    def float_logits(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Float logits of the 40 ids, and of each recorded prompt with the greedy tokens behind it."""
        greedy = [prompt["ids"] + prompt["greedy"] for prompt in self.recorded["prompts"]]
        first, *rest = FloatReference(self.gguf).logits([self.logits_ids, *greedy])
        return first, rest


@functools.cache
def load_model(name: str) -> Model:
    gguf = heirloom_cli.gguf_file(name)
    recorded = json.loads((ROOT / "tests" / "fixtures" / f"llama_cpp_{name}.json").read_text(encoding="utf-8"))
    return Model(name, gguf, heirloom_cli.overlay(gguf), recorded)


@pytest.fixture(params=MODELS)
def model(request) -> Model:
    return load_model(request.param)


@pytest.fixture
def smollm2() -> Model:
    return load_model("smollm2")


@pytest.fixture
def qwen() -> Model:
    return load_model("qwen")


def isa_levels() -> list[str]:
    """The levels that this processor has, by the names that HEIRLOOM_ISA takes."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    levels = ["portable"]
    if {"avx2", "fma", "f16c"} <= flags:
        levels.append("avx2")
    if {"avx512f", "avx512bw", "avx512vl", "avx512_vnni"} <= flags:
        levels.append("avx512")
    return levels
