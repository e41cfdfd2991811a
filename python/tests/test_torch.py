"""PyTorch tensors go in and come out where they are.

CI runs this with Debian's `python3-torch` (1.13) on the system's Python. With the newest PyTorch, from the repository root:

    python3 -m venv .torch && .torch/bin/pip install torch pytest . && .torch/bin/python -m pytest python/tests/test_torch.py
"""

from __future__ import annotations

import gc
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import heirloom  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from conftest import acc, address, cache, identity, keeper  # noqa: E402

DTYPES = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.uint8: np.uint8,
    torch.complex64: np.complex64,
}


# proves: Z2
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_of_every_dtype_goes_through_in_place_and_comes_back(dtype):
    x = torch.arange(6).reshape(2, 3).to(dtype)
    y = heirloom.Session(identity(DTYPES[dtype])).run({"x": x})["y"]
    assert y.dtype == DTYPES[dtype] and y.shape == (2, 3)
    assert address(y) == x.data_ptr()
    back = torch.from_dlpack(y)
    assert back.dtype == dtype and back.data_ptr() == x.data_ptr()
    assert torch.equal(back, x)


# proves: Z2
def test_u10_an_empty_torch_cache_is_accepted():
    session = heirloom.Session(cache())
    state = session.make_state({"past": torch.zeros(1, 2, 0, 4)})
    first = state.run({"x": torch.ones(1, 2, 3, 4)})
    assert first["present"].shape == (1, 2, 3, 4)
    second = state.run({"x": torch.full((1, 2, 1, 4), 2.0)})
    np.testing.assert_array_equal(second["y"], 5)


def test_a_state_retains_a_torch_tensor_where_it_is_and_keeps_it_alive():
    kept = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    where = kept.data_ptr()
    state = heirloom.Session(keeper(ml_dtypes.bfloat16)).make_state({"kept": kept})
    del kept
    gc.collect()
    noise = [torch.rand(2, 3).to(torch.bfloat16) for _ in range(100)]
    for _ in range(3):
        outputs = state.run({"x": torch.ones(1)})
    assert address(outputs["kept_next"]) == where and len(noise) == 100
    np.testing.assert_array_equal(outputs["kept_next"].astype(np.float32), [[0, 1, 2], [3, 4, 5]])
    assert state.report().counts.state_copied_bytes == 0


def test_strided_tensors_are_used_right_and_in_place():
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    y = heirloom.Session(identity(np.float32)).run({"x": x})["y"]
    assert address(y) == x.data_ptr()
    np.testing.assert_array_equal(y, x.numpy())
    assert torch.equal(torch.from_dlpack(y), x)
    expanded = torch.ones(1, 3).expand(2, 3)
    np.testing.assert_array_equal(heirloom.Session(identity(np.float32)).run({"x": expanded})["y"], 1)


def test_a_tensor_that_needs_gradients_is_refused_with_torchs_reason():
    session = heirloom.Session(identity(np.float32))
    with pytest.raises(heirloom.LayoutError, match="detach"):
        session.run({"x": torch.ones(2, 3, requires_grad=True)})


def test_outputs_live_on_in_torch():
    session = heirloom.Session(cache())
    state = session.make_state(session.zeros(past=0))
    out = state.run({"x": torch.full((1, 2, 3, 4), 7.0)})
    present, y = torch.from_dlpack(out["present"]), torch.from_dlpack(out["y"])
    assert present.data_ptr() == address(out["present"])
    for i in range(5):
        state.run({"x": torch.full((1, 2, 1, 4), float(i))})
    state.close()
    del out, state, session
    gc.collect()
    assert present.shape == (1, 2, 3, 4) and torch.equal(present, torch.full((1, 2, 3, 4), 7.0))
    assert torch.equal(y, torch.full((1, 2, 4), 21.0))


def test_torch_may_write_to_what_is_its_own():
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n"])
    g.output(g.op.Mul(x, np.float32(2), outputs=["y"]), np.float32, ["n"])
    y = heirloom.Session(g.build()).run({"x": torch.ones(4)})["y"]
    assert y.flags.writeable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine = torch.from_dlpack(y)
    mine += 1
    np.testing.assert_array_equal(y, 3)


def test_torch_outputs_feed_the_next_call_and_refcounts_stay_flat():
    session = heirloom.Session(acc(ml_dtypes.bfloat16))
    state = session.make_state(session.zeros(n=4))
    x = torch.ones(4, dtype=torch.bfloat16)
    for _ in range(10):
        state.run({"x": x})
    before = sys.getrefcount(x)
    for _ in range(10_000):
        state.reset({"s": torch.from_dlpack(state.run({"x": x})["y"])}) if _ % 100 == 0 else state.run({"x": x})
    assert sys.getrefcount(x) == before
    assert torch.from_dlpack(state.values()["s"]).dtype == torch.bfloat16
