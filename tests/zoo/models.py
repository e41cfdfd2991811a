"""The list of real models, and their inputs, drawn from fixed seeds."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def folder() -> Path:
    """Where the models lie: `zoo` in Heirloom's cache folder."""
    set_by = os.environ.get
    cache = set_by("HEIRLOOM_CACHE") or os.path.join(
        set_by("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "heirloom"
    )
    return Path(cache) / "zoo"


@dataclass(frozen=True)
class Entry:
    """One model: where it comes from, what it is fed, and what of its outputs goes back in."""

    name: str
    registry: str
    package: str
    version: str
    member: str
    file: str
    sha256: str
    license: str
    tags: list[str]
    steps: int
    feeds: dict[str, dict]
    tolerance: float
    extra: list[dict] = field(default_factory=list)
    state: list[list[str]] = field(default_factory=list)
    seed: int = 20261
    tolerance_abs: float = 0.0
    # One symbol stands for different extents in the model.
    free_symbols: bool = False

    @property
    def path(self) -> Path:
        return folder() / self.name / self.file

    def files(self):
        """Member of the archive, file, sha256."""
        yield self.member, self.path, self.sha256
        for other in self.extra:
            yield other["member"], self.path.parent / Path(other["member"]).name, other["sha256"]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Outputs and the inputs of the next call that they supply."""
        return [(pair[0], pair[1]) for pair in self.state if len(pair) == 2]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Outputs whose first value an input keeps."""
        return [(pair[0], pair[1]) for pair in self.state if len(pair) > 2]

    @property
    def quantized(self) -> bool:
        return "quantized" in self.tags


def entries(names: list[str] | None = None) -> list[Entry]:
    """The models of the list, or those of these names."""
    listed = [Entry(**item) for item in json.loads((HERE / "models.json").read_text(encoding="utf-8"))]
    unknown = set(names or []) - {entry.name for entry in listed}
    if unknown:
        raise SystemExit(f"no such model: {', '.join(sorted(unknown))}")
    return [entry for entry in listed if not names or entry.name in names]


def draw(entry: Entry, name: str, dtype: np.dtype, call: int) -> np.ndarray:
    """Input `name` of call `call`. Each input of each call has a generator of its own."""
    spec = entry.feeds[name]
    call = 0 if spec.get("fixed") else call
    # The only extent that grows with the calls is written as a formula.
    shape = [call + 1 if extent == "k+1" else extent for extent in spec["shape"]]
    keys = [entry.seed, zlib.crc32(entry.name.encode()), zlib.crc32(name.encode()), call]
    numbers = np.random.default_rng(keys)
    match spec["kind"]:
        case "normal":
            return (numbers.standard_normal(shape) * spec.get("scale", 1.0)).astype(dtype)
        case "uniform":
            return numbers.random(shape).astype(dtype)
        case "int":
            return numbers.integers(spec["lo"], spec["hi"], shape).astype(dtype)
        case "zeros":
            return np.zeros(shape, dtype)
        case "ones":
            return np.ones(shape, dtype)
        case "const":
            return np.full(shape, spec["value"], dtype)
        case "expr":
            # Whether this is a later call than the first.
            return np.full(shape, call > 0, dtype)
        case "strings" | "list":
            return np.array(spec["values"], dtype=dtype).reshape(shape)
        case "onehot":
            places = numbers.integers(0, shape[-1], shape[:-1])
            return (places[..., None] == np.arange(shape[-1])).astype(dtype)
        case "blocks":
            return blocks(numbers, shape, spec).astype(dtype)
    raise ValueError(spec["kind"])


def blocks(numbers: np.random.Generator, shape: list[int], spec: dict) -> np.ndarray:
    """Patches of one value: closer to a picture than noise is."""
    cells = [1] * (len(shape) - len(spec["cell"])) + spec["cell"]
    coarse = numbers.standard_normal([-(-extent // cell) for extent, cell in zip(shape, cells)])
    for axis, cell in enumerate(cells):
        coarse = np.repeat(coarse, cell, axis=axis)
    return coarse[tuple(slice(extent) for extent in shape)] * spec.get("scale", 1.0) + spec.get("shift", 0.0)
