"""Declared types: of inputs, outputs and fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import dtype_name

if TYPE_CHECKING:
    from ._structs import Struct

__all__ = ["MapType", "OptionalType", "SequenceType", "TensorType", "Type", "as_type"]

#: An extent: a number, a symbol (the same extent wherever it stands), or None for any.
Dim = int | str | None


class Type:
    """A declared type. `TensorType`, `SequenceType`, `OptionalType`, `MapType`, or a `Struct` class."""

    def _native(self) -> Any:
        raise NotImplementedError


class TensorType(Type):
    """A tensor of ``dtype`` elements.

    Args:
        dtype: a NumPy or ml_dtypes dtype, or a name of ONNX's such as ``"INT4"``.
        shape: an int, a symbol or None for each axis; None where not even the rank is known.
    """

    def __init__(self, dtype: Any, shape: Sequence[Dim] | None = None) -> None:
        self.dtype = dtype_name(dtype)
        self.shape = None if shape is None else tuple(shape)

    def _native(self) -> Any:
        return ("tensor", self.dtype, self.shape)

    def __repr__(self) -> str:
        shape = "…" if self.shape is None else ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.dtype}[{shape}]"


class SequenceType(Type):
    """A sequence of elements of one type."""

    def __init__(self, element: Any) -> None:
        self.element = as_type(element)

    def _native(self) -> Any:
        return ("sequence", native(self.element))

    def __repr__(self) -> str:
        return f"sequence({self.element!r})"


class OptionalType(Type):
    """A value of the type, or none."""

    def __init__(self, inner: Any) -> None:
        self.inner = as_type(inner)

    def _native(self) -> Any:
        return ("optional", native(self.inner))

    def __repr__(self) -> str:
        return f"optional({self.inner!r})"


class MapType(Type):
    """A map with integer or string keys."""

    def __init__(self, key: Any, value: Any) -> None:
        self.key = dtype_name(key)
        self.value = as_type(value)

    def _native(self) -> Any:
        return ("map", self.key, native(self.value))

    def __repr__(self) -> str:
        return f"map({self.key}, {self.value!r})"


def as_type(given: Any, shape: Sequence[Dim] | None = None) -> Type | type[Struct]:
    """A type as people write it: a `Type` or `Struct` class as it is, a dtype (with a shape) as a tensor's."""
    from ._structs import Struct

    if isinstance(given, Type) or (isinstance(given, type) and issubclass(given, Struct)):
        if shape is not None:
            raise TypeError("a shape goes with a dtype, not with a whole type")
        return given
    return TensorType(given, shape)


def native(ty: Any) -> Any:
    """The form that the native part takes."""
    from ._structs import Struct

    if isinstance(ty, type) and issubclass(ty, Struct):
        return ty._type
    if isinstance(ty, (Type, _native.StructType)):
        return ty._native() if isinstance(ty, Type) else ty
    raise TypeError(f"{ty!r} is no type")
