"""The common half of ONNX Runtime's Python interface over Heirloom: ``import heirloom.onnxruntime as ort`` runs scripts that
were written for the other.

`InferenceSession` takes what scripts give it (providers, options, strided arrays, lists) as ONNX Runtime does: here, and
only here, an array that cannot be used in place is copied. What is accepted and has no meaning here is said by each class.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._arrays import pack, unpack
from ._model import Model, load
from ._native import Tensor
from ._session import Port, Session
from .errors import HeirloomError, LayoutError

__all__ = [
    "GraphOptimizationLevel",
    "InferenceSession",
    "NodeArg",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
    "get_device",
]

__version__ = "heirloom"
_PROVIDER = "CPUExecutionProvider"

#: ONNX Runtime's names of element types, where they are not ONNX's in lower case.
_TYPES = {"FLOAT8E4M3FN": "float8e4m3fn", "STRING": "string", "BOOL": "bool"}


def get_available_providers() -> list[str]:
    """Where models run: ``["CPUExecutionProvider"]``."""
    return [_PROVIDER]


def get_device() -> str:
    """``"CPU"``."""
    return "CPU"


class GraphOptimizationLevel:
    """Accepted; Heirloom plans a model once and has no levels."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """Of its attributes, ``intra_op_num_threads`` counts (0 is all processors); all others are accepted and say nothing."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.log_severity_level = 2
        self.enable_profiling = False
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.execution_mode = 0

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Accepted."""


class RunOptions:
    """Accepted."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0


class NodeArg:
    """An input or output: ``name``, ``type`` (such as ``tensor(float)``) and ``shape`` (numbers, symbols, None)."""

    def __init__(self, port: Port) -> None:
        self.name = port.name
        self.shape = list(port.shape or [])
        dtype = port.dtype
        self.type = (port.type or "") if dtype is None else f"tensor({_TYPES.get(dtype, dtype.lower())})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """A model that is ready to be called.

    Args:
        path_or_bytes: a file or a serialized model; a `heirloom.Model` too.
        sess_options: see `SessionOptions`.
        providers, provider_options: accepted; models run on the processor.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | Model,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **_: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        threads = self._options.intra_op_num_threads or None
        model = path_or_bytes if isinstance(path_or_bytes, Model) else load(path_or_bytes)
        self._session = Session(model, threads=threads, decode="on_demand")
        self._ports = {port.name: port for port in self._session.inputs}

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a call must feed."""
        return [NodeArg(port) for port in self._session.inputs if not port.optional]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a value when a call does not feed them."""
        return [NodeArg(port) for port in self._session.inputs if port.optional]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [NodeArg(port) for port in self._session.outputs]

    def get_providers(self) -> list[str]:
        """``["CPUExecutionProvider"]``."""
        return [_PROVIDER]

    def get_session_options(self) -> SessionOptions:
        """The options."""
        return self._options

    def get_modelmeta(self) -> Any:
        """The model's ``graph_name`` and ``custom_metadata_map``."""
        from types import SimpleNamespace

        model = self._session.model
        return SimpleNamespace(
            graph_name=model.name, custom_metadata_map=model.metadata, producer_name="", description="", domain="", version=0
        )

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """Computes outputs.

        Args:
            output_names: the outputs wanted, in this order; None is all of them.
            input_feed: values by input.
            run_options: accepted.

        Returns:
            an array (list for sequences, None for an empty optional) for each output.

        Raises:
            RunError: feeds are missing, unknown or unfit, or a node failed.
        """
        feeds = {name: self._fed(name, value) for name, value in input_feed.items()}
        names = [port.name for port in self._session.outputs] if output_names is None else list(output_names)
        outputs = self._session.run(feeds, list(dict.fromkeys(names)) or None)
        return [self._given(outputs[name]) for name in names]

    def _given(self, value: Any) -> Any:
        """The value as NumPy has it; copied where it must be: elements of less than a byte, rows in several segments."""
        if not isinstance(value, Tensor):
            return value
        return unpack(value) if value.single else np.asarray(value.copy())

    def _fed(self, name: str, value: Any) -> Any:
        """The value as Heirloom takes it; copied where it must be."""
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OUST":
            return value
        try:
            return Tensor(value)
        except LayoutError as error:
            if error.remedy == "heirloom.pack(x)":
                return pack(value)
            dense = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
            return dense if dense.flags.aligned and dense is not value else dense.copy()

    def __repr__(self) -> str:
        return f"heirloom.onnxruntime.InferenceSession({self._session.model!r})"


#: ONNX Runtime's exceptions of failed calls are these here.
Fail = InvalidArgument = NoSuchFile = InvalidGraph = HeirloomError
