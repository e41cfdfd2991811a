"""States: the user cases in Python."""

from __future__ import annotations

import gc
import threading
import time

import heirloom
import numpy as np
import pytest
from conftest import acc, address, cache, dense, slow_session


def test_u1_state_advances_and_a_wrong_binding_is_told(acc_session):
    state = acc_session.make_state({"s": [0.0, 0.0]})
    got = [state.run({"x": [1.0, 2.0]})["y"].tolist() for _ in range(3)]
    assert got == [[1, 2], [2, 4], [3, 6]]
    with pytest.raises(heirloom.ModelError) as refused:
        acc().bind(unbind=["s"]).bind(s="state")
    assert "state" in str(refused.value) and "s_next" in str(refused.value)


def test_u19_reset_close_and_run_while_a_run_is_active_are_refused_at_once():
    session = slow_session(0.5)
    state = session.make_state({"s": [0.0]})
    x = np.eye(128, dtype=np.float32)
    earlier = state.run({"x": x}, outputs=["s_next"])["s_next"]
    result = []
    thread = threading.Thread(target=lambda: result.append(state.run({"x": x})["y"]))
    thread.start()
    while True:
        # The call holds the state from its first moment to its last.
        try:
            state.reset({"s": [1.0]})
        except heirloom.BusyError:
            break
        assert thread.is_alive()
    for attempt in [lambda: state.reset({"s": [0.0]}), state.close, lambda: state.run({"x": x})]:
        began = time.perf_counter()
        with pytest.raises(heirloom.BusyError) as busy:
            attempt()
        assert time.perf_counter() - began < 0.2
        assert isinstance(busy.value, heirloom.StateError) and isinstance(busy.value, heirloom.RunError)
    thread.join()
    assert result[0] == 128
    state.close()
    state.close()
    assert state.closed
    with pytest.raises(heirloom.ClosedError):
        state.run({"x": x})
    np.testing.assert_array_equal(earlier, [1])


def test_u20_one_session_serves_eight_threads_and_states_run_at_the_same_time():
    session = heirloom.Session(acc())
    answers = {}

    def stateless(k):
        answers[k] = [session.run({"x": [k, 1.0], "s": [0.0, i]})["y"].tolist() for i in range(50)]

    def stateful(k):
        with session.make_state(session.zeros(n=1)) as state:
            for _ in range(200):
                last = state.run({"x": [float(k)]})["y"]
            answers[k] = last.tolist()

    threads = [threading.Thread(target=stateless, args=(k,)) for k in range(8)]
    threads += [threading.Thread(target=stateful, args=(k,)) for k in range(8, 16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for k in range(8):
        assert answers[k] == [[k, 1 + i] for i in range(50)]
    for k in range(8, 16):
        assert answers[k] == [200 * k]


def test_the_interpreter_goes_on_while_a_model_runs():
    session = slow_session(0.5)
    done = threading.Event()
    x = np.eye(128, dtype=np.float32)
    thread = threading.Thread(target=lambda: (session.run({"x": x, "s": [0.0]}), done.set()))
    thread.start()
    ticks = 0
    while not done.is_set():
        ticks += 1
    thread.join()
    assert ticks > 1000


def test_u22_reset_to_held_values_repeats_the_steps_and_appends_in_place():
    session = heirloom.Session(cache())
    state = session.make_state(session.zeros(past=0))
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=(1, 2, 1, 4)).astype(np.float32) for _ in range(6)]
    for row in rows[:3]:
        state.run({"x": row})
    held = state.values()
    first = [state.run({"x": row})["present"] for row in rows[3:]]
    copies = [np.array(present) for present in first]
    state.reset(held)
    again = [state.run({"x": row})["present"] for row in rows[3:]]
    for a, b, c in zip(first, again, copies):
        np.testing.assert_array_equal(a, dense(b))
        np.testing.assert_array_equal(a, c)
    # Nobody holds the longer views any more: rows go in place behind those that were held.
    del first, again
    before = state.report().counts
    state.reset(held)
    for row in rows[3:]:
        state.run({"x": row})
    assert state.report().counts.cache_copied_bytes == before.cache_copied_bytes


def test_u24_ninety_seven_bindings_cost_little_and_are_told_apart():
    g = heirloom.GraphBuilder("many")
    x = g.input("x", np.float32, [4])
    value = x
    for i in range(97):
        s = g.input(f"s{i}", np.float32, [4])
        after = g.op.Add(s, x, outputs=[f"s{i}_next"])
        g.output(after, np.float32, [4])
        g.bind(s, after)
        value = after
    g.output(g.op.Identity(value, outputs=["y"]), np.float32, [4])
    session = heirloom.Session(g.build(), threads=1)
    assert len(session.state_spec()) == 97
    state = session.make_state()
    step = np.ones(4, np.float32)
    best = min(_timed(lambda: state.run({"x": step}, "y")) for _ in range(300))
    # 97 additions and the state around them.
    assert best < 500e-6, f"{best * 1e6:.0f} µs"
    initial = session.zeros()
    del initial["s41"]
    with pytest.raises(heirloom.StateError) as missing:
        session.make_state(initial)
    assert missing.value.missing == ["s41"] and missing.value.kind == "missing"
    with pytest.raises(heirloom.RunError) as fed:
        state.run({"x": step, "s3": step})
    assert fed.value.kind == "feeds_retained" and fed.value.name == "s3"


def _timed(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_u24_the_same_numbers_come_from_one_struct_and_from_two_states_at_once():
    fields = {f"f{i}": heirloom.Field(np.float32, [2]) for i in range(5)}
    Cache = type("Cache", (heirloom.Struct,), fields)
    g = heirloom.GraphBuilder("struct")
    x = g.input("x", np.float32, [2])
    state_in = g.input("state", Cache)
    total = x
    for name in fields:
        total = g.op.Add(total, g.field(state_in, name))
    g.output(g.op.Identity(total, outputs=["y"]), np.float32, [2])
    g.output(g.op.Identity(state_in, outputs=["state_next"]), Cache)
    g.bind("state", "state_next")
    session = heirloom.Session(g.build())
    initial = {"state": {name: np.full(2, i, np.float32) for i, name in enumerate(fields)}}
    a, b = session.make_state(initial), session.make_state(initial)
    for _ in range(3):
        ya, yb = a.run({"x": [1.0, 2.0]}), b.run({"x": [1.0, 2.0]})
        np.testing.assert_array_equal(ya["y"], [11, 12])
        np.testing.assert_array_equal(yb["y"], ya["y"])
    values = a.values()["state"]
    assert list(values) == list(fields)
    assert address(values["f3"]) == address(initial["state"]["f3"])
    with pytest.raises(ValueError, match="missing \\[\"f4\"\\]"):
        session.make_state({"state": {name: np.zeros(2, np.float32) for name in list(fields)[:4]}})


# proves: Z3
def test_u53_kept_outputs_outlive_state_session_and_model():
    session = heirloom.Session(cache())
    state = session.make_state(session.zeros(past=0))
    kept = state.run({"x": np.full((1, 2, 1, 4), 7, np.float32)})
    present, y = kept["present"], kept["y"]
    for i in range(10):
        state.run({"x": np.full((1, 2, 1, 4), i, np.float32)})
    state.close()
    del state, session, kept
    gc.collect()
    noise = [np.random.default_rng(i).normal(size=4096) for i in range(50)]
    np.testing.assert_array_equal(present, 7)
    np.testing.assert_array_equal(y, 7)
    assert len(noise) == 50


def test_u55_looking_at_a_state_costs_nothing_and_views_are_read_only():
    g = heirloom.GraphBuilder("big")
    x = g.input("x", np.float32, [1])
    s = g.input("s", np.float32, ["n"])
    after = g.op.Add(s, x, outputs=["s_next"])
    g.output(after, np.float32, ["n"])
    g.bind(s, after)
    session = heirloom.Session(g.build())
    state = session.make_state(session.zeros(n=16 << 20))
    state.run({"x": [1.0]})
    assert state.report().retained_bytes == 64 << 20
    before = state.report().counts
    began = time.perf_counter()
    seen = {address(state.values()["s"]) for _ in range(1000)}
    # 10 ms on a quiet machine.
    assert time.perf_counter() - began < 0.1
    assert len(seen) == 1
    counts = state.report().counts
    assert counts == before and counts.state_copied_bytes == 0
    view = state.values()["s"]
    assert not view.flags.writeable
    with pytest.raises(ValueError):
        view[0] = 5
    assert view[0] == 1


def test_forks_share_and_go_their_own_ways():
    session = heirloom.Session(cache())
    state = session.make_state(session.zeros(past=0))
    state.run({"x": np.ones((1, 2, 2, 4), np.float32)})
    fork = state.fork()
    assert address(fork.values()["past"]) == address(state.values()["past"])
    a = state.run({"x": np.full((1, 2, 1, 4), 5, np.float32)})["present"]
    b = fork.run({"x": np.full((1, 2, 1, 4), 6, np.float32)})["present"]
    np.testing.assert_array_equal(a[0, 0, :, 0], [1, 1, 5])
    np.testing.assert_array_equal(dense(b)[0, 0, :, 0], [1, 1, 6])
    # The fork's row stands in a segment of its own: nothing was copied, and no strides lead to all rows.
    assert fork.report().counts.cache_copied_bytes == state.report().counts.cache_copied_bytes == 0
    assert not b.single and [part.shape[2] for part in b.segments()] == [2, 1]
    assert address(b.segments()[0]) == b.address == address(a)
    with pytest.raises(ValueError, match="segments"):
        np.asarray(b)
    with pytest.raises(BufferError, match="segments"):
        np.from_dlpack(b)
    del a
    state.truncate(2)
    again = state.run({"x": np.zeros((1, 2, 1, 4), np.float32)})["present"]
    np.testing.assert_array_equal(dense(again)[0, 1, :, 3], [1, 1, 0])
    with pytest.raises(heirloom.StateError):
        state.truncate(9)


def test_a_state_closes_itself_and_says_what_it_is(acc_session):
    with acc_session.make_state(acc_session.zeros(n=2)) as state:
        state.run({"x": [1.0, 2.0]})
        assert "1 calls" in repr(state) and "8 B" in repr(state)
        assert "<table>" in state._repr_html_() and "float32" in state._repr_html_()
    assert state.closed and repr(state) == "heirloom.State(closed)"
    with pytest.raises(heirloom.ClosedError):
        state.values()


def test_errors_carry_their_fields(acc_session):
    state = acc_session.make_state(acc_session.zeros(n=2))
    cases = [
        (lambda: acc_session.run({}), "missing_feeds", {"missing": ["x", "s"], "known": ["x", "s"]}),
        (lambda: state.run({"z": [1.0]}), "unknown_feeds", {"unknown": ["z"], "known": ["x"]}),
        (lambda: state.run({"x": [1.0]}, "nothing"), "unknown_output", {"name": "nothing", "known": ["y", "s_next"]}),
        (lambda: state.run({"x": np.zeros(2)}), "input", {"name": "x", "expected": "FLOAT", "actual": "DOUBLE"}),
        (lambda: state.run({"x": np.zeros(3, np.float32)}), "input", {"symbol": "n", "expected": 3, "actual": 2}),
    ]
    for attempt, kind, fields in cases:
        with pytest.raises(heirloom.RunError) as error:
            attempt()
        assert error.value.kind == kind, error.value
        for name, value in fields.items():
            assert getattr(error.value, name) == value, (kind, name, str(error.value))
    with pytest.raises(AttributeError, match="its attributes are"):
        error.value.nonsense
    with pytest.raises(heirloom.StateError) as extent:
        acc_session.zeros()
    assert extent.value.symbol == "n"
    np.testing.assert_array_equal(state.values()["s"], 0)
