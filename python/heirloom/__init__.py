"""Heirloom runs ONNX models whose weights are self-describing encoded values and whose state is kept by the model
itself, without copying either.

>>> import heirloom, numpy as np
>>> session = heirloom.Session("model.onnx")                       # doctest: +SKIP
>>> outputs = session.run({"x": np.ones((1, 3), np.float32)})      # doctest: +SKIP

A model that declares persistent bindings keeps its state between calls:

>>> with session.make_state(session.zeros(batch=1)) as state:      # doctest: +SKIP
...     for chunk in chunks:
...         print(state.run({"audio": chunk})["probability"])

Arrays go in and come out without a copy; what cannot be used in place is refused with the reason and the remedy
(`LayoutError`). Start with `load`, `Session`, `State`, `GraphBuilder`, `gguf`, `llm`.
"""

from __future__ import annotations

import sys as _sys
import warnings as _warnings

from . import errors, gguf, llm
from ._arrays import Array, Outputs, dtype_name, numpy_dtype, pack, unpack
from ._builder import FunctionBuilder, GraphBuilder, Ops, Var
from ._model import (
    Converted,
    Fault,
    Inference,
    Inspection,
    Loss,
    Model,
    Optimized,
    PassReport,
    Quantized,
    from_onnx,
    load,
)
from ._native import CancelToken, Counts, Encoded, Report, Tensor
from ._session import Port, Session, State, StateSlot
from ._structs import Bits, Constant, Field, Layout, Struct, decoder, encoder
from ._types import MapType, OptionalType, SequenceType, TensorType, Type
from .errors import (
    BusyError,
    CancelledError,
    ClosedError,
    ConvertError,
    DecodeError,
    GgufError,
    HeirloomError,
    LanguageError,
    LayoutError,
    ModelError,
    QuantizeError,
    RunError,
    SessionError,
    StateError,
    StructError,
)

__all__ = [
    "Array",
    "Bits",
    "BusyError",
    "CancelToken",
    "CancelledError",
    "ClosedError",
    "Constant",
    "ConvertError",
    "Converted",
    "Counts",
    "DecodeError",
    "Encoded",
    "Fault",
    "Field",
    "FunctionBuilder",
    "GgufError",
    "GraphBuilder",
    "HeirloomError",
    "Inference",
    "Inspection",
    "LanguageError",
    "Layout",
    "LayoutError",
    "Loss",
    "MapType",
    "Model",
    "ModelError",
    "Ops",
    "Optimized",
    "OptionalType",
    "Outputs",
    "PassReport",
    "Port",
    "QuantizeError",
    "Quantized",
    "Report",
    "RunError",
    "SequenceType",
    "Session",
    "SessionError",
    "State",
    "StateError",
    "StateSlot",
    "Struct",
    "StructError",
    "Tensor",
    "TensorType",
    "Type",
    "Var",
    "decoder",
    "dtype_name",
    "encoder",
    "errors",
    "from_onnx",
    "gguf",
    "llm",
    "load",
    "numpy_dtype",
    "pack",
    "unpack",
]

if not getattr(_sys, "_is_gil_enabled", lambda: True)():
    _warnings.warn(
        "heirloom was not tested on free-threaded Python: use a build with the interpreter lock for work that matters",
        RuntimeWarning,
        stacklevel=2,
    )
