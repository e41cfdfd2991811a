"""Models in the making, with operators as methods.

>>> g = GraphBuilder("sum", opset=21)
>>> x = g.input("x", np.float32, ["n"])
>>> s = g.input("s", np.float32, ["n"])
>>> total = g.op.Add(x, s, outputs=["s_next"])
>>> g.output(total, np.float32, ["n"])
>>> g.bind(s, total)
>>> g.build().bindings
{'s': 's_next'}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _native
from ._arrays import dtype_name, dtype_number, dtype_of_number, numpy_dtype
from ._model import Model
from ._structs import Struct
from ._types import Dim, Type, as_type, native

__all__ = ["FunctionBuilder", "GraphBuilder", "Ops", "Var"]


class Var:
    """A value of a graph in the making. Arithmetic with other values, numbers and arrays adds nodes: ``x @ w + 1``."""

    __slots__ = ("_graph", "dtype", "name")
    __array_ufunc__ = None

    def __init__(self, graph: _Nodes, name: str, dtype: str | None = None) -> None:
        self._graph = graph
        #: The value's name in the graph.
        self.name = name
        #: ONNX's element type, where it is known.
        self.dtype = dtype

    def _with(self, op: str, other: Any, swapped: bool = False) -> Var:
        other = self._graph._operand(other, self)
        first, second = (other, self) if swapped else (self, other)
        made = self._graph.op._node(op, (first, second), {}, 1, "", None)[0]
        made.dtype = self.dtype
        return made

    def __add__(self, other: Any) -> Var:
        return self._with("Add", other)

    def __radd__(self, other: Any) -> Var:
        return self._with("Add", other, swapped=True)

    def __sub__(self, other: Any) -> Var:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Var:
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: Any) -> Var:
        return self._with("Mul", other)

    def __rmul__(self, other: Any) -> Var:
        return self._with("Mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Var:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Var:
        return self._with("Div", other, swapped=True)

    def __pow__(self, other: Any) -> Var:
        return self._with("Pow", other)

    def __matmul__(self, other: Any) -> Var:
        return self._with("MatMul", other)

    def __rmatmul__(self, other: Any) -> Var:
        return self._with("MatMul", other, swapped=True)

    def __neg__(self) -> Var:
        made = self._graph.op.Neg(self)
        made.dtype = self.dtype
        return made

    def __repr__(self) -> str:
        return f"heirloom.Var({self.name!r}{', ' + self.dtype if self.dtype else ''})"


#: Operators whose first output has the element type of their first input.
_SAME_TYPE = frozenset(
    "Abs Add AveragePool BatchNormalization Ceil Clip Concat Conv ConvTranspose Div Elu Exp Expand Flatten Floor Gather "
    "GatherElements Gelu Gemm GlobalAveragePool HardSigmoid HardSwish Identity LayerNormalization LeakyRelu Log "
    "LogSoftmax MatMul Max MaxPool Mean Min Mod Mul Neg Pad Pow RMSNormalization ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum Relu Reshape Round ScatterElements ScatterND Sigmoid Slice Softmax Softplus Split Sqrt Squeeze "
    "Sub Sum Swish Tanh Tile Transpose Unsqueeze".split()
)


#: Operators whose inputs all have one element type: a number among them takes that of the others.
_ALIKE = frozenset("Add Clip Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Pow PRelu Sub Where".split())


class Ops:
    """Operators as methods: ``g.op.MatMul(x, w)``; those of another domain: ``g.op("ai.onnx.ml").Scaler(x, scale=[2.0])``.

    A method takes the inputs (a `Var`; None for one that is left out; an array or number, which becomes a constant) and
    the attributes by name, and gives the output, or a tuple of them. Besides:

    - ``outputs``: the names of the outputs, or how many there are (1);
    - ``name``: the node's name.

    Attributes: int and bool INT, float FLOAT, str and bytes STRING, lists of these, arrays TENSOR, bodies
    (`GraphBuilder.body`) GRAPH; a NumPy dtype is its ONNX number, as in ``g.op.Cast(x, to=np.float16)``.
    """

    __slots__ = ("_domain", "_graph")

    def __init__(self, graph: _Nodes, domain: str = "") -> None:
        self._graph, self._domain = graph, domain

    def __call__(self, domain: str) -> Ops:
        return Ops(self._graph, domain)

    def __getattr__(self, op: str) -> Any:
        if op.startswith("_"):
            raise AttributeError(op)

        def add(*inputs: Any, outputs: Sequence[str] | int = 1, name: str | None = None, **attributes: Any) -> Any:
            made = self._node(op, inputs, attributes, outputs, self._domain, name)
            return made[0] if len(made) == 1 else tuple(made)

        add.__name__ = add.__qualname__ = op
        add.__doc__ = f"Adds a node `{self._domain + '.' if self._domain else ''}{op}`; see `Ops`."
        return add

    def _node(
        self,
        op: str,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        outputs: Sequence[str] | int,
        domain: str,
        name: str | None,
    ) -> list[Var]:
        first = next((value for value in inputs if isinstance(value, Var)), None)
        beside = first if op in _ALIKE else None
        names = [None if value is None else self._graph._operand(value, beside).name for value in inputs]
        given = {key: _attribute(value) for key, value in attributes.items() if value is not None}
        wanted: Any = outputs if isinstance(outputs, int) else list(outputs)
        made = self._graph._native.node(op, names, given, wanted, domain, name)
        dtype = None
        if not domain and op in _SAME_TYPE and first is not None and first is inputs[0]:
            dtype = first.dtype
        elif not domain and op == "Cast" and isinstance(given.get("to"), int):
            dtype = dtype_of_number(given["to"])
        return [Var(self._graph, output, dtype) for output in made]


def _attribute(value: Any) -> Any:
    if isinstance(value, GraphBuilder):
        return value._native
    if isinstance(value, Type) or (isinstance(value, type) and issubclass(value, Struct)):
        return native(value)
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype_number(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, list):
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return value


class _Nodes:
    """What graphs and functions have in common while they are built."""

    _native: _native.Builder

    @property
    def op(self) -> Ops:
        """Operators as methods: see `Ops`."""
        return Ops(self)

    def field(self, value: Var, *path: str) -> Var:
        """A field of a struct value or of all records of an encoded value (``ai.heirloom.Field``). Of records it is a
        tensor ``[records, *dimensions of the field]``, elements of less than a byte widened to a whole one."""
        return self.op("ai.heirloom").Field(value, path=list(path))

    def body(self, name: str = "body") -> GraphBuilder:
        """Begins the body of a control-flow operator; it sees the values of this graph. Give it as an attribute:
        ``g.op.If(condition, then_branch=a, else_branch=b)``."""
        return GraphBuilder._of(self._native.body(name))

    def constant(self, value: Any, name: str = "constant") -> Var:
        """A constant under a name that begins so."""
        return self._constant(value, name)

    def _constant(self, value: Any, name: str) -> Var:
        if isinstance(value, (bool, int, float, list, tuple)):
            value = np.asarray(value, dtype=np.float32 if _has_float(value) else None)
        made = Var(self, self._native.initializer(name, value, True))
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OUS":
            made.dtype = dtype_name(value.dtype)
        return made

    def _operand(self, value: Any, beside: Var | None) -> Var:
        if isinstance(value, Var):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and beside is not None:
            if beside.dtype is not None:
                return self._constant(np.asarray(value, numpy_dtype(beside.dtype)), "constant")
            # The type is only known when the model runs: CastLike gives the number that of its neighbour.
            return self.op.CastLike(self._constant(value, "constant"), beside)
        return self._constant(value, "constant")


def _has_float(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_float(item) for item in value)
    return isinstance(value, float)


class GraphBuilder(_Nodes):
    """A model in the making. What is wrong is said by the call that is wrong.

    Args:
        name: the main graph's name.
        opset: the version of ai.onnx.
        domains: versions of other operator sets by domain. ``ai.heirloom`` is there already.

    Raises:
        ModelError: from all methods: a name is taken or unknown, types contradict each other, and the like.
    """

    def __init__(self, name: str = "graph", *, opset: int = 21, domains: Mapping[str, int] | None = None) -> None:
        opsets = {"": opset, "ai.heirloom": 1, **(domains or {})}
        self._native = _native.Builder.for_model(name, list(opsets.items()))

    @classmethod
    def _of(cls, builder: _native.Builder) -> GraphBuilder:
        made = cls.__new__(cls)
        made._native = builder
        return made

    def input(self, name: str, of: Any = None, shape: Sequence[Dim] | None = None) -> Var:
        """Adds an input.

        Args:
            name: its name.
            of: a dtype (with a shape), a `Type` or a `Struct` class; None in bodies, where the operator around says it.
            shape: an int, a symbol or None for each axis of a tensor.
        """
        ty = None if of is None else as_type(of, shape)
        made = Var(self, self._native.input(name, None if ty is None else native(ty)))
        made.dtype = getattr(ty, "dtype", None) if isinstance(ty, Type) else None
        return made

    def output(self, value: Var | str, of: Any = None, shape: Sequence[Dim] | None = None) -> None:
        """Makes a value an output, of a type as of `input` (ONNX wants one, but for bodies' outputs). Its name is the value's, given where that was made:
        ``g.output(g.op.Add(a, b, outputs=["sum"]), "float32", ["n"])``."""
        if isinstance(of, Var):
            raise TypeError(f'an output is named where it is made: `outputs=["{_name(value)}"]`, then `g.output(value)`')
        ty = None if of is None else as_type(of, shape)
        self._native.output(_name(value), None if ty is None else native(ty))

    def bind(self, input: Var | str, output: Var | str) -> None:
        """Declares that ``output`` supplies ``input`` of the next call: a state retains it."""
        self._native.bind(_name(input), _name(output))

    def initializer(self, name: str, value: Any) -> Var:
        """Adds a constant of exactly this name. Its memory is used, not copied: do not change it.

        Args:
            value: an array, strings, or an `Encoded` of another model. Where an input has the name, it is the input's
                value when a call does not feed it.
        """
        made = Var(self, self._native.initializer(name, value, False))
        if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
            made.dtype = dtype_name(value.dtype)
        return made

    def encoded(
        self,
        name: str,
        of: type[Struct],
        records: Any,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
    ) -> Var:
        """Adds a constant in records of a struct type, in place.

        Args:
            of: the type.
            records: a structured array whose fields lie where the type says (`Struct.dtype`), or whole records as bytes.
            dtype, shape: the tensor that the records stand for, if they stand for one.

        Raises:
            StructError: a field of the array lies elsewhere.
        """
        of.check(records)
        name_of = None if dtype is None else dtype_name(dtype)
        extents = None if shape is None else list(shape)
        return Var(self, self._native.encoded(name, of._type, records, name_of, extents), name_of)

    def affine(
        self,
        name: str,
        codes: Any,
        scale: Any,
        zero_point: Any = None,
        *,
        axis: int | None = None,
        block_size: int | None = None,
        storage: Any = None,
        shape: Sequence[int] | None = None,
        dtype: Any = np.float32,
    ) -> Var:
        """Adds a constant of affine-quantized codes, as QuantizeLinear makes them.

        Args:
            codes: int8 or uint8; codes of 4 or 2 bits as ml_dtypes has them (they are packed, which copies them), or packed
                already, then with ``storage`` and ``shape``.
            scale, zero_point: one for all; for each index of ``axis``; or for each ``block_size`` codes along it.
        """
        from ._arrays import _BITS, _ONNX, pack

        if storage is None:
            codes = codes if isinstance(codes, _native.Tensor) else np.asarray(codes)
            storage = codes.dtype if isinstance(codes, _native.Tensor) else _ONNX.get(codes.dtype)
            shape = list(codes.shape)
            if storage in _BITS and not isinstance(codes, _native.Tensor):
                codes = pack(codes)
        storage = dtype_name(storage)
        if zero_point is not None and storage in _BITS and not isinstance(zero_point, _native.Tensor):
            zero_point = pack(np.asarray(zero_point).astype(numpy_dtype(storage)))
        made = self._native.affine(
            name, codes, storage, np.asarray(scale), zero_point, axis, block_size, dtype_name(dtype), list(shape or [])
        )
        return Var(self, made, dtype_name(dtype))

    def function(self, function: FunctionBuilder) -> None:
        """Adds a function; nodes call it by its domain and name."""
        self._native.add_function(function._finish())

    def metadata(self, key: str, value: str) -> None:
        """Sets an annotation of the model."""
        self._native.metadata(key, value)

    def doc(self, text: str) -> None:
        """Sets the model's text for people."""
        self._native.doc(text)

    def struct_type(self, of: type[Struct]) -> None:
        """Declares a struct type. Types are declared by their first use, too."""
        self._native.struct_type(of._type)

    def build(self, base_dir: str | os.PathLike[str] | None = None) -> Model:
        """The finished model; nothing can be added afterwards.

        Args:
            base_dir: the folder of external payloads.

        Raises:
            ModelError: with all faults that only the whole shows.
        """
        return Model(self._native.finish_model(None if base_dir is None else os.fspath(base_dir)))


class FunctionBuilder(_Nodes):
    """A function in the making: one that a model's nodes call, or the codec of a struct type.

    Args:
        domain, name: what nodes call it by.
        opset: the version of ai.onnx that its nodes use.
    """

    def __init__(self, domain: str, name: str, *, opset: int = 21, domains: Mapping[str, int] | None = None) -> None:
        opsets = {"": opset, "ai.heirloom": 1, **(domains or {})}
        self._native = _native.Builder.for_function(domain, name, list(opsets.items()))
        self._finished: _native.Function | None = None

    def input(self, name: str) -> Var:
        """Adds an input."""
        return Var(self, self._native.input(name, None))

    def output(self, value: Var | str) -> None:
        """Makes a value of the body an output."""
        self._native.output(_name(value), None)

    def _finish(self) -> _native.Function:
        if self._finished is None:
            self._finished = self._native.finish_function()
        return self._finished


def _name(value: Var | str) -> str:
    return value.name if isinstance(value, Var) else value
