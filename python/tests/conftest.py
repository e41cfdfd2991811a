"""Small models that the tests share, built with the package itself: no test needs the `onnx` package unless it is about it."""

from __future__ import annotations

import time

import heirloom
import ml_dtypes
import numpy as np
import pytest


def acc(dtype=np.float32) -> heirloom.Model:
    """ACC of the user cases: y = x + s, s_next = x + s; s <- s_next."""
    g = heirloom.GraphBuilder("acc", opset=21)
    x = g.input("x", dtype, ["n"])
    s = g.input("s", dtype, ["n"])
    y = g.op.Add(x, s, outputs=["y"])
    after = g.op.Identity(y, outputs=["s_next"])
    g.output(y, dtype, ["n"])
    g.output(after, dtype, ["n"])
    g.bind(s, after)
    return g.build()


def identity(dtype, shape=("a", "b")) -> heirloom.Model:
    g = heirloom.GraphBuilder("identity", opset=21)
    x = g.input("x", dtype, list(shape))
    g.output(g.op.Identity(x, outputs=["y"]), dtype, list(shape))
    return g.build()


def keeper(dtype=np.float32, shape=("a", "b")) -> heirloom.Model:
    """The state keeps what it has: kept <- kept_next = kept; y = x + 1."""
    g = heirloom.GraphBuilder("keeper", opset=21)
    x = g.input("x", np.float32, ["n"])
    kept = g.input("kept", dtype, list(shape))
    g.output(g.op.Add(x, np.float32(1), outputs=["y"]), np.float32, ["n"])
    after = g.op.Identity(kept, outputs=["kept_next"])
    g.output(after, dtype, list(shape))
    g.bind(kept, after)
    return g.build()


def cache(heads=2, dim=4) -> heirloom.Model:
    """A cache that grows: past <- present = Concat(past, x) along the rows; y = its sum over the rows."""
    shape = [1, heads, "past", dim]
    g = heirloom.GraphBuilder("cache", opset=21)
    x = g.input("x", np.float32, [1, heads, "new", dim])
    past = g.input("past", np.float32, shape)
    present = g.op.Concat(past, x, axis=2, outputs=["present"])
    total = g.op.ReduceSum(present, np.array([2], np.int64), keepdims=0, outputs=["y"])
    g.output(total, np.float32, [1, heads, dim])
    g.output(present, np.float32, [1, heads, "total", dim])
    g.bind(past, present)
    return g.build()


def dense(value) -> np.ndarray:
    """The elements of a cache, wherever its rows lie."""
    return value.copy() if isinstance(value, heirloom.Tensor) else value


def slow(steps=300, size=128) -> heirloom.Model:
    """Many products in a row: a call that takes long enough to be interrupted; s <- s_next = s + 1."""
    g = heirloom.GraphBuilder("slow", opset=21)
    x = g.input("x", np.float32, [size, size])
    s = g.input("s", np.float32, [1])
    value = x
    for _ in range(steps):
        value = g.op.MatMul(value, x)
    y = g.op.ReduceSum(value, keepdims=0, outputs=["y"])
    after = g.op.Add(s, np.float32([1]), outputs=["s_next"])
    g.output(y, np.float32, [])
    g.output(after, np.float32, [1])
    g.bind(s, after)
    return g.build()


def slow_session(seconds=1.0, size=128) -> heirloom.Session:
    """A session of `slow` on one thread whose calls take about so long on this machine."""
    probe = heirloom.Session(slow(50, size), threads=1)
    x = np.eye(size, dtype=np.float32)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        probe.run({"x": x, "s": [0.0]})
        times.append(time.perf_counter() - began)
    return heirloom.Session(slow(int(50 * seconds / min(times)) + 1, size), threads=1)


@pytest.fixture
def acc_session() -> heirloom.Session:
    return heirloom.Session(acc())


def address(array) -> int:
    """Where an array's first element lies."""
    return array.__array_interface__["data"][0]


#: Every NumPy dtype whose elements ONNX keeps as NumPy does.
WHOLE_DTYPES = [
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu,
]  # fmt: skip
PACKED_DTYPES = [
    ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn,
    ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn,
]  # fmt: skip
