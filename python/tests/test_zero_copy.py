"""Arrays go in and come out where they are: addresses and the ledger prove it; what does not fit is refused."""

from __future__ import annotations

import array
import gc
import sys
import weakref

import heirloom
import ml_dtypes
import numpy as np
import pytest
from conftest import PACKED_DTYPES, WHOLE_DTYPES, acc, address, cache, identity, keeper


def filled(dtype, shape=(2, 3)) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(np.float32).astype(dtype)


# proves: Z2
@pytest.mark.parametrize("dtype", WHOLE_DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_an_array_of_every_dtype_goes_through_a_session_in_place(dtype):
    x = filled(dtype)
    y = heirloom.Session(identity(dtype)).run({"x": x})["y"]
    assert y.dtype == x.dtype and y.shape == x.shape
    assert address(y) == address(x)
    assert not y.flags.writeable, "the caller's array and this one share memory"
    assert y.tensor.place == "foreign"
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("dtype", WHOLE_DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_a_state_retains_the_callers_array_of_every_dtype(dtype):
    x = filled(dtype)
    state = heirloom.Session(keeper(dtype)).make_state({"kept": x})
    for _ in range(3):
        outputs = state.run({"x": [1.0]})
    assert address(outputs["kept_next"]) == address(state.values()["kept"]) == address(x)
    counts = state.report().counts
    assert counts.state_copied_bytes == counts.kernel_copied_bytes == 0


@pytest.mark.parametrize("dtype", PACKED_DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_narrow_elements_are_packed_by_a_call_that_says_so_and_go_through_in_place(dtype):
    x = np.array([[0, 1, -1], [1, 0, 1]]).astype(np.float32).astype(dtype)
    session = heirloom.Session(identity(dtype))
    with pytest.raises(heirloom.LayoutError) as refused:
        session.run({"x": x})
    assert refused.value.remedy == "heirloom.pack(x)"
    packed = heirloom.pack(x)
    y = session.run({"x": packed})["y"]
    assert isinstance(y, heirloom.Tensor) and y.shape == (2, 3)
    assert y.address == packed.address
    np.testing.assert_array_equal(heirloom.unpack(y).astype(np.float32), x.astype(np.float32))


def test_u8_packed_codes_have_the_standards_bytes():
    def packed(values, dtype):
        return bytes(np.asarray(heirloom.pack(np.array(values).astype(dtype))))

    assert packed([1, 2, -3], ml_dtypes.int4) == b"\x21\x0d"
    assert packed([1, 2], ml_dtypes.uint4) == b"\x21"
    assert packed([0, 1, 2, 3], ml_dtypes.uint2) == b"\xe4"
    assert packed([3, 0, 1], ml_dtypes.uint2) == b"\x13"
    assert packed([-1, 1, -2], ml_dtypes.int2) == b"\x27"


# proves: Z2
def test_u10_an_empty_first_cache_is_accepted_from_numpy_and_natively():
    session = heirloom.Session(cache())
    for past in [np.zeros((1, 2, 0, 4), np.float32), session.zeros(past=0)["past"]]:
        state = session.make_state({"past": past})
        first = state.run({"x": np.ones((1, 2, 3, 4), np.float32)})
        assert first["present"].shape == (1, 2, 3, 4)
        np.testing.assert_array_equal(first["present"], 1)
        second = state.run({"x": np.full((1, 2, 1, 4), 2, np.float32)})
        np.testing.assert_array_equal(second["present"][:, :, :, 0], [[[1, 1, 1, 2]] * 2])
        np.testing.assert_array_equal(second["y"], 5)


def test_an_empty_array_of_every_rank_goes_through():
    for shape in [(0,), (0, 0), (0, 3), (3, 0)]:
        model = identity(np.float32, [f"d{i}" for i in range(len(shape))])
        assert heirloom.Session(model).run({"x": np.zeros(shape, np.float32)})["y"].shape == shape


# proves: Z2
def test_u15_strided_arrays_are_used_right_and_in_place():
    a = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    session = heirloom.Session(keeper(np.float32, [1, 2, 2, 2]))
    for strided in [a.transpose(0, 2, 3, 1), np.asfortranarray(a), np.broadcast_to(np.float32(3), (1, 2, 2, 2))]:
        state = session.make_state({"kept": strided})
        outputs = state.run({"x": [0.0]})
        np.testing.assert_array_equal(outputs["kept_next"], strided)
        assert address(outputs["kept_next"]) == address(strided)
        assert state.report().counts.kernel_copied_bytes == 0


@pytest.mark.parametrize("op", ["Relu", "Add", "MatMul", "Softmax", "Transpose", "Concat", "ReduceSum", "Slice", "Cast"])
def test_operators_read_strided_feeds_as_numpy_does(op):
    base = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["a", "b"])
    y = {
        "Relu": lambda: g.op.Relu(x),
        "Add": lambda: x + 1.0,
        "MatMul": lambda: x @ np.ones((4, 5), np.float32),
        "Softmax": lambda: g.op.Softmax(x, axis=1),
        "Transpose": lambda: g.op.Transpose(x, perm=[1, 0]),
        "Concat": lambda: g.op.Concat(x, x, axis=0),
        "ReduceSum": lambda: g.op.ReduceSum(x, np.array([0], np.int64)),
        "Slice": lambda: g.op.Slice(x, np.array([1]), np.array([3]), np.array([0])),
        "Cast": lambda: g.op.Cast(x, to=np.float64),
    }[op]()
    g.output(y, np.float64 if op == "Cast" else np.float32, ["c", "d"])
    session = heirloom.Session(g.build())
    strided = base[::2, ::2]
    assert not strided.flags.c_contiguous
    (got,) = session.run({"x": strided}).values()
    (expected,) = session.run({"x": np.ascontiguousarray(strided)}).values()
    np.testing.assert_array_equal(got, expected)


# proves: Z2
def test_what_cannot_be_used_in_place_is_refused_with_reason_and_remedy():
    session = heirloom.Session(identity(np.float32))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    misaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    cases = {
        "backwards": (x[:, ::-1], "np.ascontiguousarray(x)"),
        "big-endian": (x.astype(">f4"), "x.astype(x.dtype.newbyteorder('='))"),
        "address": (misaligned, "x.copy()"),
        "element type": (x.astype(np.longdouble), "x.astype(...)"),
    }
    for reason, (bad, remedy) in cases.items():
        with pytest.raises(heirloom.LayoutError) as refused:
            session.run({"x": bad})
        error = refused.value
        assert reason in error.reason and error.remedy == remedy and "input `x`" in str(error), str(error)
    np.testing.assert_array_equal(session.run({"x": np.ascontiguousarray(x[:, ::-1])})["y"], x[:, ::-1])


def test_numbers_and_lists_become_arrays_of_the_declared_type():
    session = heirloom.Session(acc(np.int64))
    outputs = session.run({"x": [1, 2], "s": np.array([10, 20])})
    np.testing.assert_array_equal(outputs["y"], [11, 22])
    with pytest.raises(TypeError, match="input `x`"):
        session.run({"x": object(), "s": [1]})
    with pytest.raises(TypeError, match="input `x`"):
        session.run({"x": [[1], [2, 3]], "s": [1]})


def test_other_buffers_go_in_place():
    session = heirloom.Session(identity(np.float32, ["n"]))
    values = array.array("f", [1, 2, 3])
    y = session.run({"x": values})["y"]
    np.testing.assert_array_equal(y, [1, 2, 3])
    assert address(y) == values.buffer_info()[0]
    with pytest.raises(BufferError):
        values.append(4)  # the array is in use, so that it cannot move
    memory = memoryview(np.float32([4, 5]))
    np.testing.assert_array_equal(session.run({"x": memory})["y"], [4, 5])


def test_fresh_outputs_are_writable_and_shared_ones_are_not(acc_session):
    fresh = heirloom.Session(cache()).run(
        {"x": np.ones((1, 2, 1, 4), np.float32), "past": np.zeros((1, 2, 0, 4), np.float32)}
    )["y"]
    fresh += 1
    np.testing.assert_array_equal(fresh, 2)
    state = acc_session.make_state(acc_session.zeros(n=2))
    kept = state.run({"x": [1.0, 2.0]})["y"]
    with pytest.raises(ValueError, match="read-only"):
        kept += 1
    with pytest.raises(ValueError):
        kept.flags.writeable = True


# proves: Z3
def test_writing_to_a_fresh_output_never_reaches_a_later_call():
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n"])
    g.output(g.op.Mul(x, np.float32(2), outputs=["y"]), np.float32, ["n"])
    session = heirloom.Session(g.build())
    held = []
    for i in range(20):
        y = session.run({"x": np.full(1000, i, np.float32)})["y"]
        np.testing.assert_array_equal(y, 2 * i)
        y[:] = -1
        held.append(y) if i % 3 == 0 else None
    for y in held:
        np.testing.assert_array_equal(y, -1)


def test_numpy_takes_outputs_by_dlpack_in_place(acc_session):
    y = acc_session.run({"x": [1.0, 2.0], "s": [0.0, 0.0]})["y"]
    again = np.from_dlpack(y)
    assert address(again) == address(y)
    np.testing.assert_array_equal(again, [1, 2])
    part = np.from_dlpack(y[1:])
    assert address(part) == address(y) + 4
    del y
    gc.collect()
    np.testing.assert_array_equal(again, [1, 2])


def test_dlpack_says_what_is_read_only_where_the_consumer_can_hear_it(acc_session):
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy before 2.1 takes no DLPack 1.0")
    state = acc_session.make_state(acc_session.zeros(n=2))
    shared = state.run({"x": [1.0, 2.0]})["y"]
    assert not np.from_dlpack(shared).flags.writeable
    fresh = heirloom.Session(cache()).run(
        {"x": np.ones((1, 2, 1, 4), np.float32), "past": np.zeros((1, 2, 0, 4), np.float32)}
    )["y"]
    assert np.from_dlpack(fresh).flags.writeable


def test_a_capsule_that_nobody_takes_is_freed_and_one_is_taken_once():
    x = np.ones(1000, np.float32)
    before = sys.getrefcount(x)
    tensor = heirloom.Tensor(x)
    for _ in range(100):
        tensor.__dlpack__()
        tensor.__dlpack__(max_version=(1, 0))
    for wishes in [{"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}]:
        with pytest.raises(BufferError):
            tensor.__dlpack__(**wishes)
    del tensor
    gc.collect()
    assert sys.getrefcount(x) == before


# proves: Z2
def test_refcounts_stay_flat_over_ten_thousand_calls():
    session = heirloom.Session(acc())
    state = session.make_state(session.zeros(n=4))
    x = np.ones(4, np.float32)
    half = np.ones(4, ml_dtypes.bfloat16)
    passing = heirloom.Session(identity(ml_dtypes.bfloat16, ["n"]))
    for _ in range(1000):
        state.run({"x": x})
        passing.run({"x": half})
    gc.collect()
    counted = [x, half, np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16), session, state, type(state.values()["s"])]
    before = [sys.getrefcount(item) for item in counted]
    blocks = sys.getallocatedblocks()
    for _ in range(10_000):
        state.run({"x": x})
        passing.run({"x": half})
    gc.collect()
    after = [sys.getrefcount(item) for item in counted]
    assert after == before
    # One block kept by each call would be 10,000; the interpreter's own caches come and go by a hundred.
    assert abs(sys.getallocatedblocks() - blocks) < 500
    np.testing.assert_array_equal(state.values()["s"], 11_000)


def test_an_array_is_held_as_long_as_something_uses_it_and_not_longer():
    class Mine(np.ndarray):
        """Arrays themselves take no weak references."""

    def made():
        x = np.arange(4, dtype=np.float32).reshape(2, 2).view(Mine)
        return x, weakref.ref(x)

    session = heirloom.Session(identity(np.float32))
    x, gone = made()
    y = session.run({"x": x})["y"]
    del x
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(y, [[0, 1], [2, 3]])
    del y
    gc.collect()
    assert gone() is None


def test_results_of_arithmetic_are_plain_arrays_and_views_keep_the_memory(acc_session):
    y = acc_session.run({"x": [1.0, 2.0], "s": [0.0, 0.0]})["y"]
    assert type(y) is heirloom.Array
    assert type(y + 1) is np.ndarray and type(y.copy() * 2) is np.ndarray
    part = y[1:]
    assert address(part) == address(y) + 4
    del y
    gc.collect()
    np.testing.assert_array_equal(part, [2])
    import copy
    import pickle

    again = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(again, [2])
    assert float(copy.deepcopy(part)[0]) == 2


def test_strings_go_through():
    g = heirloom.GraphBuilder()
    x = g.input("x", "STRING", ["n"])
    g.output(g.op.Identity(x, outputs=["y"]), "STRING", ["n"])
    session = heirloom.Session(g.build())
    for given in [["é", "b"], np.array(["é", "b"]), np.array(["é", "b"], object)]:
        y = session.run({"x": given})["y"]
        assert y.tolist() == ["é", "b"] and y.dtype == object
