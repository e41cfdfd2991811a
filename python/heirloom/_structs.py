"""Struct types as small classes.

>>> class Block(Struct, type_id=990_001):
...     "32 codes of 4 bits and their scale."
...     scale = Field(np.float16)
...     codes = Field("UINT4", [32])
>>> Block.record_bytes
18
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from . import _html, _native
from ._arrays import dtype_name, numpy_dtype
from ._types import native
from .errors import StructError

__all__ = ["Bits", "Constant", "Field", "Layout", "Struct", "decoder", "encoder"]


class Field:
    """A field that each record (or struct value) has of its own.

    Args:
        of: an element type (`np.float16`, ``"INT4"``), another `Struct`, or a `Type` such as ``TensorType(np.float32,
            ["tokens", 64])`` for fields without a fixed size, which only struct values have.
        shape: the extents of a tensor; ``()`` is one element.
        count: for a `Struct`: so many records, one behind the other.
    """

    def __init__(self, of: Any, shape: Sequence[int] = (), *, count: int | None = None) -> None:
        self.of = of
        self.shape = tuple(shape)
        self.count = count

    def _entry(self, name: str) -> tuple[Any, ...]:
        from ._types import Type

        if isinstance(self.of, type) and issubclass(self.of, Struct):
            if self.count is not None:
                return (name, "nested_array", self.of._type, self.count)
            return (name, "nested", self.of._type)
        if isinstance(self.of, Type):
            return (name, "type", native(self.of))
        return (name, "tensor", dtype_name(self.of), list(self.shape))


class Bits:
    """Groups of unsigned bit fields, from the lowest bit up.

    Args:
        widths: the width of the one component (which is then called ``bits``), or widths by component.
        count: how many groups.

    >>> Bits({"low": 4, "high": 4}, count=16).widths
    {'low': 4, 'high': 4}
    """

    def __init__(self, widths: int | Mapping[str, int], *, count: int = 1) -> None:
        self.widths = {"bits": widths} if isinstance(widths, int) else dict(widths)
        self.count = count

    def _entry(self, name: str) -> tuple[Any, ...]:
        return (name, "bits", list(self.widths.items()), self.count)


class Constant:
    """A constant of the format: every record shares it, no record stores it.

    Args:
        value: an array, a number, or strings.
    """

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, dtype=np.float32) if isinstance(value, (list, tuple, float)) else value

    def _entry(self, name: str) -> tuple[Any, ...]:
        return (name, "constant", self.value)


class _Codec:
    def __init__(self, build: Callable[..., Any], opset: int, kind: str) -> None:
        self.build, self.opset, self.kind = build, opset, kind

    def function(self, owner: str) -> _native.Function:
        from ._builder import FunctionBuilder

        builder = FunctionBuilder("ai.heirloom", f"{self.kind}_{owner}", opset=self.opset)
        argument = builder.input("records" if self.kind == "decode" else "values")
        builder.output(self.build(builder, argument))
        return builder._finish()


def decoder(build: Callable[..., Any] | None = None, *, opset: int = 21) -> Any:
    """Marks the function of a `Struct` class that writes its decoder: a graph that computes the tensor from the records.
    It goes into the file, so that readers that do not know the format can decode it.

    The function takes a `FunctionBuilder` and the records, and returns the decoded elements, ``[records, elements of a
    record]`` in FLOAT. ``g.field(records, "scale")`` reads a field of all records.
    """
    if build is None:
        return lambda build: _Codec(build, opset, "decode")
    return _Codec(build, opset, "decode")


def encoder(build: Callable[..., Any] | None = None, *, opset: int = 21) -> Any:
    """Marks the function of a `Struct` class that writes its encoder: the records from the tensor, as bytes."""
    if build is None:
        return lambda build: _Codec(build, opset, "encode")
    return _Codec(build, opset, "encode")


class Layout:
    """Where the fields of a struct type lie in a record. In a notebook: a map of its bits."""

    def __init__(self, name: str, type_id: int | None, bits: int | None, fields: list[dict[str, Any]]) -> None:
        self.name, self.type_id, self.bits, self.fields = name, type_id, bits, fields

    def __repr__(self) -> str:
        length = "no fixed size" if self.bits is None else f"{self.bits} bits"
        lines = [f"struct {self.name}: {length}"]
        for field in self.fields:
            count = "".join(f"[{count}]" for count, _ in field["dims"])
            lines.append(f"  bit {field['bit_offset']:5d}  {field['path'] or '(elements)'}: {field['element']}{count}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.struct_type(self.name, self.type_id, self.bits, self.fields)


class Struct:
    """Base of struct types. A subclass declares its fields, in the order of their bytes, as class attributes that are
    `Field`, `Bits` or `Constant`; fields follow each other without padding.

    Class arguments:
        type_id: the type's identity in models. Once a file may hold it, it never changes its meaning.
        name: the declared name; the class's own without this.

    Class attributes:
        type_id, bit_size, record_bytes: of the declaration; ``record_bytes`` raises `StructError` where a field has no
            fixed size.
        layout: where each field lies.

    Raises:
        StructError: the declaration is wrong.
    """

    _type: ClassVar[_native.StructType]
    type_id: ClassVar[int | None]
    bit_size: ClassVar[int | None]
    layout: ClassVar[Layout]

    def __init_subclass__(cls, *, type_id: int | None = None, name: str | None = None) -> None:
        super().__init_subclass__()
        fields = [value._entry(key) for key, value in vars(cls).items() if isinstance(value, (Field, Bits, Constant))]
        codecs = {value.kind: value for value in vars(cls).values() if isinstance(value, _Codec)}
        name = name or cls.__name__
        made = {kind: codec.function(name) for kind, codec in codecs.items()}
        cls._type = _native.StructType(
            name, fields, type_id=type_id, decoder=made.get("decode"), encoder=made.get("encode")
        )
        cls.type_id = type_id
        cls.bit_size = cls._type.bit_size
        cls.layout = Layout(name, type_id, cls.bit_size, cls._type.leaves())

    class _RecordBytes:
        def __get__(self, instance: Any, owner: type[Struct]) -> int:
            return owner._type.record_bytes

    #: Bytes of one record.
    record_bytes = _RecordBytes()

    @classmethod
    def dtype(cls) -> np.dtype:
        """The NumPy structured dtype of a record, for types whose fields are whole bytes; packed fields are bytes.

        Raises:
            StructError: a field does not begin at a byte, or the type has no fixed size.
        """
        names, formats, offsets = [], [], []
        for leaf in cls._type.leaves():
            begin, bits = leaf["bit_offset"], leaf["bits"]
            if "." in leaf["path"] or begin % 8:
                raise StructError(f"`{leaf['path']}` begins at bit {begin}: NumPy's fields are whole bytes; use uint8 records")
            dims = [count for count, _ in leaf["dims"]]
            if bits % 8:
                total = bits * int(np.prod(dims, dtype=np.int64))
                if total % 8:
                    raise StructError(f"`{leaf['path']}` takes {total} bits: NumPy's fields are whole bytes")
                form: Any = (np.uint8, (total // 8,))
            else:
                form = (numpy_dtype(leaf["element"]), tuple(dims)) if dims else numpy_dtype(leaf["element"])
            names.append(leaf["path"])
            formats.append(form)
            offsets.append(begin // 8)
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": cls.record_bytes})

    @classmethod
    def check(cls, records: Any) -> None:
        """Whether an array holds records of this type: uint8 of whole records, or a structured dtype whose fields lie
        where the declaration says.

        Raises:
            StructError: it does not; the message says which field lies elsewhere.
        """
        dtype = getattr(records, "dtype", None)
        if dtype is None or dtype.names is None:
            return
        size = cls.record_bytes
        if dtype.itemsize != size:
            raise StructError(
                f"records of {dtype.itemsize} bytes are given, and {cls.__name__} takes {size}; NumPy pads with align=True"
            )
        places = {leaf["path"].split(".")[0]: leaf for leaf in reversed(cls._type.leaves())}
        for name in dtype.names:
            _, offset = dtype.fields[name][:2]
            leaf = places.get(name)
            if leaf is None:
                raise StructError(f"{cls.__name__} has no field `{name}`; it has {', '.join(reversed(places))}")
            if leaf["bit_offset"] != offset * 8:
                raise StructError(
                    f"field `{name}` begins at byte {offset}, and in {cls.__name__} at bit {leaf['bit_offset']}"
                )
