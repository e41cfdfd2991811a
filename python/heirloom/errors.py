"""Exceptions: one class for each family. ``kind`` says which case it is, the other attributes say what and where.

Whatever a call fails with: a state is as it was before the call.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DecodeError",
    "GgufError",
    "HeirloomError",
    "LanguageError",
    "LayoutError",
    "ModelError",
    "QuantizeError",
    "RunError",
    "SessionError",
    "StateError",
    "StructError",
]


class HeirloomError(Exception):
    """Any error of this package.

    Attributes:
        kind: which case of its family it is, such as ``"missing_feeds"``.
    """

    kind: str = ""

    def __getattr__(self, name: str) -> Any:
        # Attributes depend on the case; asking for one that this case lacks says which there are.
        if name.startswith("_"):
            raise AttributeError(name)
        known = ", ".join(sorted(vars(self))) or "none"
        raise AttributeError(f"this {type(self).__name__} ({self.kind}) has no `{name}`; its attributes are: {known}")


class LayoutError(HeirloomError, ValueError):
    """An array cannot be used where it lies. It is never copied in silence.

    Attributes:
        reason: what about it does not fit.
        remedy: the call that makes one that fits, such as ``np.ascontiguousarray(x)``; None where there is no one call.
    """


class ModelError(HeirloomError, ValueError):
    """A file is no valid model, or a model cannot be built, changed or saved.

    Attributes:
        path: the file (kinds ``invalid``, ``write``).
        faults: for ``invalid``: ``[(place, what is wrong)]``.
        call, reason: for ``call``: what was being added or changed, and what is wrong with it.
    """


class StructError(HeirloomError, ValueError):
    """A struct type's declaration is wrong, or records do not have its layout.

    Attributes:
        path: the field.
        reason: what is wrong with it.
    """


class SessionError(HeirloomError, ValueError):
    """A model is valid and cannot be run.

    Attributes:
        nodes: ``[(node, operator, reason)]`` of all nodes that cannot be computed.
        value, layout, type_id: for ``missing_consumer``: the encoded value that nothing takes.
        input, output, reason: for ``binding``.
    """


class RunError(HeirloomError, RuntimeError):
    """A call failed. What it computed is gone; a state is as it was.

    Attributes (by kind):
        missing, known: ``missing_feeds``.
        unknown, known: ``unknown_feeds``, ``unknown_output``.
        name, expected, actual: ``input``: a feed does not fit its declaration.
        node, op, reason: ``node``: an operator failed.
        output, input: ``retained``: a value that was to be retained does not fit.
    """


class StateError(HeirloomError, RuntimeError):
    """A state could not be made or changed; it is as it was.

    Attributes (by kind):
        missing: ``missing``: persistent inputs without an initial value.
        unknown, known: ``unknown``: names that are no persistent inputs.
        name, expected, actual: ``value``: an initial value does not fit.
        name, symbol: ``extent``: a symbolic dimension without an extent.
        path, reason: ``file``: a state's file that cannot be written or is not to be trusted.
    """


class BusyError(RunError, StateError):
    """The state is busy with another call: one call at a time, many states at once."""


class ClosedError(RunError, StateError):
    """The state was closed."""


class CancelledError(RunError):
    """The call was stopped by its token or its time limit.

    Attributes:
        node: the node that was about to run or running.
    """


class DecodeError(HeirloomError, RuntimeError):
    """An encoded value cannot be decoded."""


class QuantizeError(HeirloomError, ValueError):
    """A model's initializers cannot be given another form."""


class ConvertError(HeirloomError, ValueError):
    """A model cannot be rewritten, or be said in standard ONNX.

    Attributes (by kind):
        losses: ``losses``: ``[(name, what)]`` of all that standard ONNX has no words for.
        value, reason: ``value``: an encoded value that cannot be lowered.
    """


class GgufError(HeirloomError, ValueError):
    """A GGUF file cannot be imported."""


class LanguageError(HeirloomError, RuntimeError):
    """A language model cannot be opened, or a prompt not be answered."""
