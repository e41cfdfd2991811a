"""The affine layout against `onnx.reference` and ONNX Runtime, over random shapes, axes, blocks and parameters."""

import importlib.util
import itertools
import os
import pathlib
import struct
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
# Another one gives other cases.
SEED = int(os.environ.get("HEIRLOOM_SEED", "20261202"))


def load_recorder():
    spec = importlib.util.spec_from_file_location("affine", ROOT / "crates/types/tests/fixtures/affine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.rng = np.random.default_rng(SEED)
    return module


def forms(rng):
    """Each rank, each axis from both ends, per tensor, per axis and in blocks of any size, ragged ones too."""
    for rank in range(1, 5):
        for axis in [None, *range(-rank, rank)]:
            for blocked in [False, True] if axis is not None else [False]:
                shape = [int(n) for n in rng.integers(1, 8 if rank > 2 else 40, rank)]
                if rng.random() < 0.1:
                    shape[int(rng.integers(rank))] = 0 if axis is None else 1
                block = int(rng.integers(1, shape[axis] + 3)) if blocked else None
                yield shape, axis, block


# proves: A3, A4, A6, A7
def test_random_affine_values_equal_onnx_to_the_bit(tmp_path):
    affine = load_recorder()
    types = itertools.product(affine.STORAGE, affine.FLOAT, [affine.T.FLOAT, affine.T.FLOAT16, affine.T.BFLOAT16])
    cases = []
    for storage, scale_type, logical in types:
        for shape, axis, block in forms(affine.rng):
            with_zero, edge = affine.rng.random(2) < [0.5, 0.3]
            cases.append(affine.case(storage, scale_type, logical, shape, axis, block, bool(with_zero), bool(edge)))
    path = tmp_path / "cases.bin"
    path.write_bytes(struct.pack("<I", len(cases)) + b"".join(cases))
    command = ["cargo", "run", "-q", "-p", "heirloom-types", "--example", "compare_affine", "--", str(path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, f"HEIRLOOM_SEED={SEED}\n{result.stderr}"
    compared, quantized = map(int, result.stdout.split())
    assert compared == len(cases) and quantized > len(cases) // 3
    # The others have no kernel there: `onnx.reference` alone says what they are.
    assert affine.runtime_runs > len(cases) // 3
