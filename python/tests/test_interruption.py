"""Ctrl-C, time limits, tokens and asynchronous calls: whatever stops a call leaves the state as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import heirloom
import numpy as np
import pytest
from conftest import acc, slow_session

EYE = np.eye(128, dtype=np.float32)


@pytest.fixture(autouse=True)
def interruptible():
    """As in a terminal: what runs in the background of a script inherits that SIGINT is ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def state():
    session = slow_session()
    with session.make_state({"s": [5.0]}) as state:
        yield state


def unchanged(state) -> bool:
    return state.values()["s"].tolist() == [5]


def test_ctrl_c_stops_a_run_and_leaves_the_state(state):
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        state.run({"x": EYE})
    assert time.perf_counter() - began < 3
    assert unchanged(state)
    assert state.run({"x": EYE}, "s_next", timeout=None)["s_next"].tolist() == [6]


def test_a_signal_handler_that_raises_nothing_does_not_stop_a_run(state):
    seen = []
    previous = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.perf_counter()))
    try:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        state.run({"x": EYE}, "s_next")
        done = time.perf_counter()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert len(seen) == 1 and seen[0] < done


def test_a_time_limit_stops_a_run(state):
    with pytest.raises(heirloom.CancelledError) as stopped:
        state.run({"x": EYE}, timeout=0.05)
    assert stopped.value.kind == "cancelled" and "MatMul" in stopped.value.node
    assert unchanged(state)
    with pytest.raises(ValueError, match="timeout"):
        state.run({"x": EYE}, timeout=-1.0)


def test_a_token_stops_a_run_from_another_thread(state):
    token = heirloom.CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(heirloom.CancelledError):
        state.run({"x": EYE}, cancel=token)
    assert token.cancelled and unchanged(state)
    token.reset()
    assert not token.cancelled


def test_calls_are_awaited_on_a_few_threads():
    session = heirloom.Session(acc())

    async def one(k):
        with session.make_state(session.zeros(n=1)) as state:
            for _ in range(20):
                outputs = await state.run_async({"x": [float(k)]})
            return float(outputs["y"][0])

    async def many():
        return await asyncio.gather(*(one(k) for k in range(100)))

    before = threading.active_count()
    assert asyncio.run(many()) == [20.0 * k for k in range(100)]
    assert threading.active_count() <= before + 8


def test_cancelling_a_task_stops_its_call_and_leaves_the_state(state):
    async def impatient():
        began = time.perf_counter()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(state.run_async({"x": EYE}), 0.1)
        assert time.perf_counter() - began < 2
        assert unchanged(state)
        state.reset({"s": [7.0]})  # not busy any more

    asyncio.run(impatient())
    assert state.values()["s"].tolist() == [7]


def test_outputs_survive_the_end_of_the_interpreter():
    code = """
        import atexit, threading, heirloom, numpy as np
        g = heirloom.GraphBuilder()
        x = g.input("x", np.float32, ["n"])
        s = g.input("s", np.float32, ["n"])
        y = g.op.Add(x, s, outputs=["y"])
        g.output(y, np.float32, ["n"])
        g.bind(s, y)
        session = heirloom.Session(g.build())
        state = session.make_state(session.zeros(n=3))
        kept = state.run({"x": np.ones(3, np.float32)})["y"]
        capsule = kept.__dlpack__()
        passed = np.from_dlpack(kept)
        atexit.register(lambda: print("last", kept.tolist(), passed.tolist()))
        def forever():
            while True:
                state.fork().run({"x": np.ones(3, np.float32)})
        threading.Thread(target=forever, daemon=True).start()
        import sys
        sys.held = [kept, capsule, passed, state]
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "last [1.0, 1.0, 1.0] [1.0, 1.0, 1.0]\n" and done.stderr == ""
