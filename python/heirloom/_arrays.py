"""NumPy arrays over Heirloom's memory, and what the native part asks of NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TYPE_CHECKING

import ml_dtypes
import numpy as np
from numpy import ndarray

from ._native import Tensor

if TYPE_CHECKING:
    from ._native import Counts

__all__ = ["Array", "Outputs", "dtype_name", "numpy_dtype", "pack", "unpack"]

#: NumPy's element types by ONNX's names, in the order of ONNX's numbers from 1 on. Those of less than a byte take a whole one in NumPy.
_NUMPY: dict[str, np.dtype] = {
    name: np.dtype(of)
    for name, of in {
        "FLOAT": np.float32,
        "UINT8": np.uint8,
        "INT8": np.int8,
        "UINT16": np.uint16,
        "INT16": np.int16,
        "INT32": np.int32,
        "INT64": np.int64,
        "STRING": np.object_,
        "BOOL": np.bool_,
        "FLOAT16": np.float16,
        "DOUBLE": np.float64,
        "UINT32": np.uint32,
        "UINT64": np.uint64,
        "COMPLEX64": np.complex64,
        "COMPLEX128": np.complex128,
        "BFLOAT16": ml_dtypes.bfloat16,
        "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
        "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "FLOAT8E5M2": ml_dtypes.float8_e5m2,
        "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "UINT4": ml_dtypes.uint4,
        "INT4": ml_dtypes.int4,
        "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
        "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
        "UINT2": ml_dtypes.uint2,
        "INT2": ml_dtypes.int2,
        "FLOAT6E2M3": ml_dtypes.float6_e2m3fn,
        "FLOAT6E3M2": ml_dtypes.float6_e3m2fn,
    }.items()
}
_ONNX: dict[np.dtype, str] = {dtype: name for name, dtype in _NUMPY.items()}
#: Bits of the elements that ONNX packs.
_BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}


def dtype_name(dtype: Any) -> str:
    """ONNX's name of an element type: of a NumPy or ml_dtypes dtype or scalar type, or of a name of either side.

    >>> dtype_name(np.float32), dtype_name("bfloat16"), dtype_name("INT4")
    ('FLOAT', 'BFLOAT16', 'INT4')

    Raises:
        TypeError: when ONNX has no such type.
    """
    if isinstance(dtype, str):
        # Upper case is ONNX's: its FLOAT has 32 bits, NumPy's `float` 64.
        if dtype in _NUMPY:
            return dtype
        dtype = getattr(ml_dtypes, dtype, dtype)
    if dtype is str:
        return "STRING"
    try:
        found = _ONNX.get(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        raise TypeError(f"ONNX has no element type {dtype!r}; it has {', '.join(_NUMPY)}")
    return found


def dtype_number(dtype: Any) -> int:
    """ONNX's number of an element type, as attributes such as Cast's ``to`` hold it."""
    return list(_NUMPY).index(dtype_name(dtype)) + 1


def dtype_of_number(number: int) -> str | None:
    """ONNX's name of an element type by its number; None for numbers that are none."""
    return list(_NUMPY)[number - 1] if 0 < number <= len(_NUMPY) else None


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of an ONNX element type by name. Strings are objects; packed types take a byte each in NumPy."""
    return _NUMPY[name]


class Array(ndarray):
    """A NumPy array over memory that Heirloom owns or keeps alive: the memory lives as long as the array or any view
    of it, whatever becomes of the session or state. Memory that a state or another value shares is read-only.

    ``torch.from_dlpack(array)`` and ``np.from_dlpack(array)`` use the same memory, bfloat16 and 8-bit floats included.
    Results of arithmetic are plain arrays.
    """

    #: The tensor that the array shows whole; None for views of parts.
    _tensor: Tensor | None = None

    def __array_finalize__(self, obj: Any) -> None:
        self._tensor = None

    def __array_wrap__(self, array: ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(ndarray) if isinstance(array, Array) else array
        return plain[()] if plain.ndim == 0 else plain

    def __reduce__(self) -> Any:
        return self.view(ndarray).__reduce__()

    def __dlpack_device__(self) -> tuple[Literal[1], Literal[0]]:
        return (1, 0)

    def __dlpack__(self, **wishes: Any) -> Any:
        """A DLPack capsule over the same memory. Consumers that are older than DLPack 1.0 cannot be told that memory is
        read-only: they must not write to it."""
        tensor = self._tensor
        if tensor is None:
            tensor = Tensor(self.view(ndarray))
        return tensor.__dlpack__(**wishes)

    @property
    def tensor(self) -> Tensor:
        """The tensor behind the array: its place, address and ONNX type."""
        return self._tensor if self._tensor is not None else Tensor(self.view(ndarray))


class Outputs(dict):
    """The outputs of one call by name, in the model's order.

    Attributes:
        counts: what the call copied, appended, allocated and reused.
    """

    __slots__ = ("counts",)
    counts: Counts


def wrap(tensor: Tensor) -> Array | Tensor:
    """A NumPy array over a tensor; the tensor itself where NumPy has no such elements (those of less than a byte), or
    none that lie so (in several segments)."""
    name = tensor.dtype
    if name in _BITS or not tensor.single:
        return tensor
    dtype = _NUMPY[name]
    if tensor.contiguous:
        # Any object with a buffer will do; NumPy's stubs list some.
        buffer: Any = tensor
        array = ndarray.__new__(Array, tensor.shape, dtype, buffer)
    else:
        array = np.asarray(tensor).view(dtype).view(Array)
    array._tensor = tensor
    return array


def from_python(value: Any, name: str | None) -> ndarray:
    """A number or a list of numbers as an array, of the declared type where there is one."""
    if not isinstance(value, (bool, int, float, complex, list, tuple)):
        raise TypeError(
            f"a `{type(value).__name__}` is no array: give a NumPy array, a tensor with `__dlpack__`, a buffer, "
            "a number or a list of numbers"
        )
    dtype = None if name is None else _NUMPY[name]
    array = np.asarray(value, dtype=dtype)
    if array.dtype.kind in "OUS":
        raise TypeError("the list is ragged or holds more than numbers")
    if name is None and array.dtype.kind == "f":
        return array.astype(np.float32)
    return array


def strings(value: Any) -> tuple[list[int], list[bytes]]:
    """Shape and elements of a tensor of strings."""
    array = np.asarray(value, dtype=object)

    def element(item: Any) -> bytes:
        if isinstance(item, str):
            return item.encode("utf-8")
        if isinstance(item, bytes):
            return bytes(item)
        raise TypeError(f"expected strings, got a `{type(item).__name__}`")

    return list(array.shape), [element(item) for item in array.ravel().tolist()]


def string_array(shape: list[int], elements: Iterable[bytes]) -> ndarray:
    """Strings as an array of objects: `str` where they are UTF-8, else `bytes`."""

    def element(item: bytes) -> str | bytes:
        try:
            return item.decode("utf-8")
        except UnicodeDecodeError:
            return item

    array = np.empty(len(list(elements)) if not isinstance(elements, list) else len(elements), dtype=object)
    array[:] = [element(item) for item in elements]
    return array.reshape(shape)


def pack(array: Any) -> Tensor:
    """The elements of an ml_dtypes array of 2, 4 or 6 bits as ONNX packs them, from the lowest bits up. This copies: a
    NumPy array takes a byte for each.

    Args:
        array: of dtype int2, uint2, int4, uint4, float4_e2m1fn, float6_e2m3fn or float6_e3m2fn, any shape.

    Returns:
        a tensor of the same shape, of ``ceil(elements * bits / 8)`` bytes; unused high bits are zero.

    Raises:
        TypeError: for other dtypes, which need no packing.
    """
    array = np.ascontiguousarray(array)
    name = _ONNX.get(array.dtype)
    if name not in _BITS:
        raise TypeError(f"{array.dtype} elements fill whole bytes: feed them as they are")
    bits = _BITS[name]
    codes = array.view(np.uint8).reshape(-1, 1)
    planes = (codes >> np.arange(bits, dtype=np.uint8)) & 1
    packed = np.packbits(planes.reshape(-1), bitorder="little")
    return Tensor(packed, dtype=name, shape=array.shape)


def unpack(tensor: Tensor) -> ndarray:
    """The elements of a packed tensor, one to a byte, as an ml_dtypes array. This copies; arrays of other types are
    shown in place.
    """
    name = tensor.dtype
    if name not in _BITS:
        return np.asarray(wrap(tensor))
    bits, count = _BITS[name], int(np.prod(tensor.shape, dtype=np.int64))
    planes = np.unpackbits(np.asarray(tensor), bitorder="little")[: count * bits].reshape(count, bits)
    codes = (planes << np.arange(bits, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)
    if name in ("INT4", "INT2"):
        # ml_dtypes keeps the sign in the byte's unused bits.
        codes = ((codes.astype(np.int8) ^ (1 << (bits - 1))) - (1 << (bits - 1))).astype(np.int8)
    return codes.view(np.uint8).view(_NUMPY[name]).reshape(tensor.shape)
