"""Sessions, which run models, and states, which carry their persistent values from call to call."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _html, _native
from ._arrays import Outputs
from ._model import Model, load
from ._native import CancelToken, Report

__all__ = ["Port", "Session", "State", "StateSlot"]

#: What may be fed: see `Session.run`.
Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Port:
    """An input or output as the model declares it.

    Attributes:
        name: its name.
        type: the declared type in words, such as ``FLOAT[batch, 3]``; None where nothing is declared.
        dtype: ONNX's element type, for tensors.
        shape: an int, a symbol or None for each axis; None where not even the rank is declared.
        optional: a call may leave it out, since the model has an initializer of its name.
        persistent: a binding names it: a state retains it.
    """

    name: str
    type: str | None
    dtype: str | None
    shape: tuple[int | str | None, ...] | None
    optional: bool = False
    persistent: bool = False


@dataclass(frozen=True)
class StateSlot:
    """An input that a state retains.

    Attributes:
        name: the input.
        output: the output that supplies its next value.
        type, dtype, shape: as of `Port`.
    """

    name: str
    output: str
    type: str | None
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


def _tuple(entry: dict[str, Any]) -> dict[str, Any]:
    shape = entry["shape"]
    return {**entry, "shape": None if shape is None else tuple(shape)}


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _executor() -> ThreadPoolExecutor:
    """The threads that wait for asynchronous calls: a few, shared by all."""
    global _pool
    with _pool_lock:
        if _pool is None:
            workers = max(2, min(8, os.cpu_count() or 2))
            _pool = ThreadPoolExecutor(workers, thread_name_prefix="heirloom-async")
        return _pool


async def _run_async(run: Any, feeds: Feeds, outputs: Sequence[str] | None, timeout: float | None) -> Outputs:
    token = CancelToken()
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(_executor(), run, feeds, outputs, token, timeout)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # The state is free again only when the call has stopped.
        token.cancel()
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()
        raise


def _wanted(outputs: Sequence[str] | str | None) -> list[str] | None:
    if outputs is None:
        return None
    return [outputs] if isinstance(outputs, str) else list(outputs)


class Session:
    """A model bound to kernels, ready to be called from any number of threads at once.

    Args:
        model: a `Model`, or what `load` takes: a path, or the bytes of a model.
        threads: how many threads share a call's work, the caller's included; None takes all processors that the process
            may use. Sessions that ask for the same number share their threads.
        prepack: True lets kernels keep constants in a faster arrangement beside the file's, a number at most so many bytes
            of them; False reads constants where they are.
        decode: what becomes of encoded initializers that no kernel takes: ``"off"`` refuses the model, ``"on_demand"``
            decodes them when a call first needs them, with the decoder that the file brings if need be.
        reserve: rows that a new cache has room for; memory is taken as rows are written.
        growth: the factor by which a full cache grows, or None: it is then full for good.

    Raises:
        ModelError: the file is no valid model.
        SessionError: nodes have no kernel, or a binding is wrong; it tells all of them.
    """

    __slots__ = ("_model", "_native")

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        threads: int | None = None,
        prepack: bool | int = False,
        decode: str = "off",
        reserve: int | None = None,
        growth: float | None = 2.0,
    ) -> None:
        self._model = model if isinstance(model, Model) else load(model)
        if isinstance(prepack, bool):
            budget = sys.maxsize * 2 + 1 if prepack else None
        else:
            budget = prepack
        self._native = _native.Session(
            self._model._native, threads=threads, decode=decode, prepack=budget, reserve=reserve, growth=growth
        )

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def threads(self) -> int:
        """How many threads share a call's work."""
        return self._native.threads

    @property
    def inputs(self) -> list[Port]:
        """The inputs in the model's order."""
        return [Port(**_tuple(entry)) for entry in self._native.inputs()]

    @property
    def outputs(self) -> list[Port]:
        """The outputs in the model's order."""
        return [Port(**_tuple(entry)) for entry in self._native.outputs()]

    def run(
        self,
        feeds: Feeds,
        outputs: Sequence[str] | str | None = None,
        *,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
    ) -> Outputs:
        """Computes outputs from feeds alone; persistent inputs are fed like all others.

        Args:
            feeds: a value for each input that has no initializer. Tensors are NumPy arrays, DLPack tensors (PyTorch,
                JAX), buffers or `Tensor`; they are used in place and kept alive, never copied: do not change them while
                the call runs, nor while outputs that may share them are in use. Numbers and lists of numbers are made
                arrays of the declared type. Structs are dicts of their fields, sequences lists, maps dicts, optionals the
                value or None.
            outputs: the names wanted; None wants all.
            cancel: stops the call from another thread. Ctrl-C stops a call on the main thread.
            timeout: stops the call after so many seconds.

        Returns:
            outputs by name: arrays over the memory that the call wrote, in place; structs as dicts. An array is writable
            where nothing else uses its memory. ``.counts`` tells what the call did with memory.

        Raises:
            RunError: feeds are missing, unknown or unfit (nothing is computed then), or a node failed.
            CancelledError: the token or the time limit stopped the call.
            LayoutError: an array cannot be used without a copy; it says why, and what makes one that can.
        """
        return self._native.run(feeds, _wanted(outputs), cancel, timeout)

    async def run_async(
        self, feeds: Feeds, outputs: Sequence[str] | str | None = None, *, timeout: float | None = None
    ) -> Outputs:
        """`run` on one of a few threads that all asynchronous calls share. Cancelling the task stops the call."""
        return await _run_async(self._native.run, feeds, _wanted(outputs), timeout)

    def state_spec(self) -> list[StateSlot]:
        """The inputs that a state retains, with the outputs that supply them; empty for a model without bindings."""
        return [StateSlot(**_tuple(entry)) for entry in self._native.state_spec()]

    def zeros(self, extents: Mapping[str, int] | None = None, /, **symbols: int) -> dict[str, Any]:
        """A zero tensor for each persistent input, to begin a state with.

        Args:
            extents, symbols: extents of the symbolic dimensions, such as ``batch=1, past_len=0``; names that are no
                Python names go into a dict.

        Raises:
            StateError: a dimension has no extent (``kind == "extent"``), or an input is no tensor of fixed-width elements.
        """
        given = {**(extents or {}), **symbols}
        return self._native.zeros(list(given.items()))

    def make_state(self, initial: Feeds | None = None) -> State:
        """A state that begins with these values for the persistent inputs. Nothing is copied.

        Args:
            initial: a value for each persistent input, as of `run`. None begins with zeros, which takes that no
                dimension is symbolic.

        Raises:
            StateError: the model has no bindings, or values are missing, unknown or unfit.
            LayoutError: an array cannot be used without a copy.
        """
        return State(self, self._native.make_state(self.zeros() if initial is None else initial))

    def load_state(self, path: str | os.PathLike[str]) -> State:
        """A state that goes on where `State.save` wrote it: values are used in the file's mapping, none is copied. The file
        must not be rewritten in place while they live; saving anew replaces it and is safe.

        Raises:
            StateError: the file is none, is damaged, or belongs to another model; ``kind`` is ``"file"``.
        """
        return State(self, self._native.load_state(path))

    def report(self) -> Report:
        """What the session's calls (those of its states too) did with memory so far."""
        return self._native.report()

    def trim(self) -> None:
        """Gives the working memory that waits for later calls back to the system."""
        self._native.trim()

    def __repr__(self) -> str:
        def names(ports: list[Port]) -> str:
            shown = [f"{port.name}: {port.type or '?'}" for port in ports if not port.persistent]
            return ", ".join(shown[:4] + (["…"] if len(shown) > 4 else []))

        slots = len(self.state_spec())
        state = f", {slots} persistent" if slots else ""
        return f"heirloom.Session(({names(self.inputs)}) -> ({names(self.outputs)}){state}, threads={self.threads})"

    def _repr_html_(self) -> str:
        return _html.session(self)


class State:
    """One request's retained values. Made by `Session.make_state`; a context manager that closes itself.

    One call at a time: a second one meanwhile raises `BusyError` at once. Many states may run at the same time. A call that
    fails, is cancelled or interrupted leaves the state as it was.

    >>> with session.make_state(session.zeros(batch=1)) as state:      # doctest: +SKIP
    ...     for chunk in chunks:
    ...         probability = state.run({"audio": chunk})["probability"]
    """

    __slots__ = ("_native", "_session")

    def __init__(self, session: Session, native: _native.State) -> None:
        self._session = session
        self._native = native

    @property
    def session(self) -> Session:
        """The session."""
        return self._session

    def run(
        self,
        feeds: Feeds | None = None,
        outputs: Sequence[str] | str | None = None,
        *,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
    ) -> Outputs:
        """One call: computes outputs from feeds and the retained values, then retains what the model's bindings name.
        All or nothing.

        Args and returns: as `Session.run`; persistent inputs are not fed. Retained outputs are read-only: the state
        shares their memory. An array whose memory the model retains (unchanged, or a view of it) must not be changed as
        long as the state has it.

        Raises:
            RunError, CancelledError, LayoutError: as `Session.run`.
            BusyError: another call is under way.
            ClosedError: the state was closed.
        """
        return self._native.run({} if feeds is None else feeds, _wanted(outputs), cancel, timeout)

    async def run_async(
        self,
        feeds: Feeds | None = None,
        outputs: Sequence[str] | str | None = None,
        *,
        timeout: float | None = None,
    ) -> Outputs:
        """`run` on one of a few threads that all asynchronous calls share. Cancelling the task stops the call and
        leaves the state as it was."""
        return await _run_async(self._native.run, {} if feeds is None else feeds, _wanted(outputs), timeout)

    def values(self) -> dict[str, Any]:
        """The retained values by the name of their input: read-only arrays over the very memory, at no cost. They stay
        valid and unchanged whatever becomes of the state; `reset` takes them back.

        Raises:
            ClosedError: the state was closed.
        """
        return self._native.values()

    def reset(self, initial: Feeds | None = None) -> None:
        """Replaces all retained values, as `Session.make_state` makes them.

        Raises:
            StateError, LayoutError: as `Session.make_state`; the state is then as it was.
            BusyError, ClosedError: a call is under way, or the state was closed.
        """
        self._native.reset(self._session.zeros() if initial is None else initial)

    def truncate(self, rows: int) -> None:
        """Shortens every retained cache to its first `rows` rows. Nothing is copied.

        Raises:
            StateError: a retained value is no cache that grew by appending, or has fewer rows.
            BusyError, ClosedError: a call is under way, or the state was closed.
        """
        self._native.truncate(rows)

    def fork(self) -> State:
        """A second state that goes on from here. Both share all memory written so far; nothing is copied.

        Raises:
            ClosedError: the state was closed.
        """
        return State(self._session, self._native.fork())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the retained values to a file, with their types, a checksum and the identity of the model;
        `Session.load_state` goes on from it. The file is replaced as a whole once it is complete. The state goes on as it
        is; what is saved is what it was after its last call.

        Raises:
            StateError: the file cannot be written; one that was there is as it was.
            ClosedError: the state was closed.
        """
        self._native.save(path)

    def close(self) -> None:
        """Drops the retained values. Arrays that were handed out stay valid. Closing again does nothing.

        Raises:
            BusyError: a call is under way.
        """
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether the state was closed."""
        return self._native.closed

    def report(self) -> Report:
        """What the state holds, and what its calls did with memory so far."""
        return self._native.report()

    def __enter__(self) -> State:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "heirloom.State(closed)"
        report = self.report()
        held = f"{len(self.values())} values, {_html.size(report.retained_bytes)}"
        return f"heirloom.State({held} retained, {report.calls} calls)"

    def _repr_html_(self) -> str:
        return _html.state(self)
