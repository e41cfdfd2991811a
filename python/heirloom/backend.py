"""Heirloom as a backend of the ``onnx`` package: ``onnx.backend.test.BackendTest(heirloom.backend, __name__)`` runs the
standard's own tests on it.

Backends take any array: here, as in `heirloom.onnxruntime`, what cannot be used in place is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx.backend.base import Backend, BackendRep

from ._model import from_onnx
from .errors import HeirloomError
from .onnxruntime import InferenceSession

__all__ = ["HeirloomBackend", "HeirloomRep", "is_compatible", "prepare", "run_model", "supports_device"]


class HeirloomRep(BackendRep):
    """A model that is ready to be called with lists of inputs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs in the model's order of inputs in the model's order (those with a default may be left out at the end),
        or by name."""
        if isinstance(inputs, Mapping):
            feeds = dict(inputs)
        else:
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            names = [port.name for port in self._session._session.inputs]
            if len(inputs) > len(names):
                raise ValueError(f"{len(inputs)} inputs are given, and the model has {len(names)}")
            feeds = dict(zip(names, inputs))
        feeds = {name: np.asarray(value) if np.isscalar(value) else value for name, value in feeds.items()}
        return tuple(_plain(value) for value in self._session.run(None, feeds))


def _plain(value: Any) -> Any:
    """Arrays as NumPy's own class over the same memory: the tests of the `onnx` package compare classes."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value


class HeirloomBackend(Backend):
    """The backend."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> HeirloomRep:
        """Binds an ``onnx.ModelProto``.

        Raises:
            ModelError, SessionError: as `heirloom.Session`.
        """
        if not cls.supports_device(device):
            raise ValueError(f"models run on the CPU, not on {device}")
        return HeirloomRep(InferenceSession(from_onnx(model)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Binds and calls a model once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """Not offered: a node alone has no types; make a model of it."""
        raise NotImplementedError("a node alone has no types: make a model of it")

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every node of the model has a kernel."""
        try:
            cls.prepare(model, device)
        except HeirloomError:
            return False
        return True

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        return device.split(":")[0] == "CPU"


prepare = HeirloomBackend.prepare
run_model = HeirloomBackend.run_model
run_node = HeirloomBackend.run_node
is_compatible = HeirloomBackend.is_compatible
supports_device = HeirloomBackend.supports_device
