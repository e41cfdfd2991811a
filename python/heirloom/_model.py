"""Models: opened, looked at, changed, saved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _html, _native

__all__ = [
    "Converted", "Fault", "Inference", "Inspection", "Loss", "Model", "Optimized", "PassReport", "Quantized", "from_onnx", "load",
]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a model, and where.

    Attributes:
        path: the way through the messages, such as ``graph.node[3].attribute[0]``.
        problem: what is wrong there.
    """

    path: str
    problem: str

    def __str__(self) -> str:
        return f"`{self.path}`: {self.problem}" if self.path else self.problem


@dataclass(frozen=True)
class Loss:
    """An initializer that got another form.

    Attributes:
        name, shape, dtype: of the initializer; ``dtype`` is ONNX's.
        bytes_before, bytes_after: of its payload.
        rmse, max_error: how far the encoded values lie from those given; ``rms`` is the size of those. None where nothing
            changed.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes_before: int
    bytes_after: int
    rmse: float | None
    max_error: float | None
    rms: float | None


@dataclass(frozen=True)
class Quantized:
    """What `Model.quantize` gives.

    Attributes:
        model: the model; save it to keep it.
        tensors: the initializers that got another form.
        skipped: why others stay as they are, by name.
    """

    model: Model
    tensors: list[Loss]
    skipped: dict[str, str]


@dataclass(frozen=True)
class Inference:
    """What `Model.infer` found.

    Attributes:
        graphs: for each graph (``""`` is the main one, bodies and functions have a place in it) the type of each value by
            name, such as ``"FLOAT[batch,past + 1,64]"``; None where nothing is known.
        conflicts: where the model contradicts itself; both sources are named.
        unknown_operators: ``(domain, operator, count)`` of those without a rule.
    """

    graphs: dict[str, dict[str, str | None]]
    conflicts: list[str]
    unknown_operators: list[tuple[str, str, int]]

    def __getitem__(self, name: str) -> str | None:
        """The type of a value of the main graph."""
        return self.graphs[""][name]


@dataclass(frozen=True)
class PassReport:
    """What one pass of `Model.optimize` did.

    Attributes:
        name: the pass.
        nodes_removed, nodes_made, constants_removed, constants_made: how many.
        opset: the version that it raised the standard operators to, or None.
    """

    name: str
    nodes_removed: int
    nodes_made: int
    constants_removed: int
    constants_made: int
    opset: int | None


@dataclass(frozen=True)
class Optimized:
    """What `Model.optimize` gives.

    Attributes:
        model: the model; save it to keep it.
        passes: what each pass did, in the order in which they ran.
    """

    model: Model
    passes: list[PassReport]


@dataclass(frozen=True)
class Converted:
    """What `Model.convert` gives.

    Attributes:
        model: the model in standard ONNX; save it to keep it.
        bindings: output by input of each binding that was: feed the output's value to the input of the next call.
        weights: what each encoded value became, by name.
    """

    model: Model
    bindings: dict[str, str]
    weights: dict[str, str]


class Inspection(dict):
    """What is in a model, as plain data (dicts, lists, numbers, strings): ``inputs``, ``outputs``, ``bindings``,
    ``types``, ``constants``, ``operators``, ``functions``, ``metadata``, ``inline_bytes``, ``external_bytes`` and more.
    Printed, it is the report that ``heirloom inspect`` prints.
    """

    def __str__(self) -> str:
        return self["text"]

    def __repr__(self) -> str:
        return self["text"]

    def _repr_html_(self) -> str:
        return _html.inspection(self)


class Model:
    """An ONNX model. Immutable; its payloads stay in the mapped file. Changes make another model.

    Made by `load`, `from_onnx`, `GraphBuilder.build` and the methods below.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Model) -> None:
        if not isinstance(native, _native.Model):
            raise TypeError("use `heirloom.load`, `heirloom.from_onnx` or `heirloom.GraphBuilder` to get a model")
        self._native = native

    @property
    def name(self) -> str:
        """The main graph's name."""
        return self._native.name

    @property
    def path(self) -> str | None:
        """The file that the model was opened from."""
        path = self._native.path
        return None if path is None else os.fspath(path)

    @property
    def metadata(self) -> dict[str, str]:
        """The model's annotations."""
        return self._native.metadata

    @property
    def bindings(self) -> dict[str, str]:
        """The output that supplies the next value of each persistent input."""
        return dict(self._native.bindings)

    @property
    def initializers(self) -> list[str]:
        """The names of the main graph's constants."""
        return self._native.initializers()

    def initializer(self, name: str) -> Any:
        """A constant of the main graph, in place: a read-only array, or an `Encoded`.

        Raises:
            KeyError: there is none of that name.
            ModelError: its payload is not at hand.
        """
        return self._native.initializer(name)

    def inspect(self) -> Inspection:
        """What is in the model: no payload is read, no decoder is run."""
        return Inspection(self._native.inspect())

    def verify(self) -> list[Fault]:
        """Every fault of the model; an empty list is good news."""
        return [Fault(path, problem) for path, problem in self._native.verify()]

    def bind(self, bindings: Mapping[str, str] | None = None, /, *, unbind: Iterable[str] = (), **names: str) -> Model:
        """The model with persistent inputs: each named input gets its next value from the named output.

        >>> model.bind({"past_key": "present_key"}, state="stateN")      # doctest: +SKIP

        Args:
            bindings, names: output by input.
            unbind: inputs that are persistent no longer.

        Raises:
            ModelError: a name is no input or output, or is bound twice, or the types can never agree.
        """
        pairs = list({**(bindings or {}), **names}.items())
        return Model(self._native.rebound(pairs, list(unbind)))

    def rename(self, names: Mapping[str, str]) -> Model:
        """The model with values of the main graph renamed (new name by old), wherever they are named.

        Raises:
            ModelError: there is no such value, or the new name is taken.
        """
        return Model(self._native.edited(list(names.items()), []))

    def with_metadata(self, entries: Mapping[str, str | None]) -> Model:
        """The model with annotations set, or with None removed."""
        return Model(self._native.edited([], list(entries.items())))

    def quantize(
        self,
        format: str,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        axis: int | None = None,
        block_size: int | None = None,
        threads: int | None = None,
    ) -> Quantized:
        """The model with float initializers encoded, and how much each lost.

        >>> small = model.quantize("q4_k").model            # doctest: +SKIP

        Args:
            format: a format of records (``"q4_k"``, ``"q8_0"``, ``"nf4"``, …), affine codes (``"int8"``, ``"int4"``, …),
                ``"nvfp4"`` or ``"k_means:16"``. ``"float32"`` decodes what is encoded.
            include, exclude: patterns of names (``*``, ``?``). Without ``include``: what operators take encoded.
            axis, block_size: for affine codes: where scales belong.

        Raises:
            QuantizeError: nothing is selected.
            ValueError: there is no such format; the message lists those that there are.
        """
        model, tensors, skipped = _native.quantize(
            self._native, format, list(include), list(exclude), axis, block_size, threads
        )
        return Quantized(Model(model), [Loss(**{**entry, "shape": tuple(entry["shape"])}) for entry in tensors], skipped)

    def infer(self, *, ignore_declared: bool = False) -> Inference:
        """The type and symbolic shape of every value. Contradictions are listed, not raised.

        >>> model.infer()["logits"]                         # doctest: +SKIP
        'FLOAT[batch,sequence,151936]'

        Args:
            ignore_declared: leaves types aside that the model declares of values in between and of outputs.
        """
        return Inference(*_native.infer(self._native, ignore_declared))

    def optimize(self, passes: Iterable[str] | None = None) -> Optimized:
        """The model rewritten by passes that change no result but for rounding: constants folded, dead and common nodes
        dropped, patterns recognized. Inputs, outputs, bindings and annotations stay.

        Args:
            passes: only these, by name (``heirloom optimize --list`` shows them); else all that run unasked.

        Raises:
            ValueError: there is no such pass; the message lists those that there are.
            ConvertError: a pass would have changed what callers see.
        """
        model, reports = _native.optimize(self._native, None if passes is None else list(passes))
        return Optimized(Model(model), [PassReport(**report) for report in reports])

    def convert(self, *, lower: bool = False, dense: bool = False) -> Converted:
        """The model as standard ONNX.

        Args:
            lower: says in standard operators what standard ONNX has no words for: encoded values as DequantizeLinear, as
                their decoder's nodes or as dense tensors; bindings as ordinary inputs and outputs. Without it such a model
                is refused.
            dense: decodes all encoded values to dense tensors.

        Raises:
            ConvertError: something would be lost; ``losses`` lists it all.
        """
        if dense and not lower:
            raise ValueError("`dense` says how to lower: it goes with `lower=True`")
        model, bindings, weights = _native.convert(self._native, lower, dense)
        return Converted(self if model is None else Model(model), dict(bindings), dict(weights))

    def save(self, path: str | os.PathLike[str], *, external: str = "keep") -> None:
        """Saves the model; what was not changed is written as it was, byte for byte.

        Args:
            path: the file.
            external: where payloads go: ``"keep"`` leaves each where it is (files beside the model are not touched),
                ``"inline"`` writes all into the model file, ``"file"`` all into one file beside it.

        Raises:
            ModelError: the file cannot be written, or payloads could not be reached from there.
        """
        self._native.save(path, external)

    def to_bytes(self) -> bytes:
        """The model as a serialized ``ModelProto``; payloads beside the model stay there."""
        return self._native.to_bytes()

    def to_onnx(self) -> Any:
        """The model as an ``onnx.ModelProto``. What ONNX does not know (encoded initializers, struct types, bindings) is
        kept in it as unknown fields: `from_onnx` has them back.

        Raises:
            ImportError: the ``onnx`` package is not installed.
        """
        import onnx

        return onnx.load_model_from_string(self.to_bytes())

    def __repr__(self) -> str:
        where = f" from {self.path!r}" if self.path else ""
        return f"heirloom.Model({self.name!r}, {self._native.nodes} nodes, {len(self.initializers)} constants{where})"

    def _repr_html_(self) -> str:
        return _html.inspection(self.inspect())


def load(
    source: str | os.PathLike[str] | Any,
    *,
    base_dir: str | os.PathLike[str] | None = None,
    external_roots: Iterable[str | os.PathLike[str]] = (),
    allow_missing_files: bool = False,
) -> Model:
    """Opens a model. The file and those of its external payloads are mapped; of payloads nothing is read.

    Args:
        source: the path of a model file; or a serialized ``ModelProto`` as bytes or another buffer, which is kept, not
            copied.
        base_dir: for bytes: the folder of external payloads. Without one they are not at hand: the current folder is
            never looked into.
        external_roots: folders that symbolic links beside the model may lead into.
        allow_missing_files: opens a model whose files of payloads are not there, to look at it.

    Raises:
        ModelError: the file cannot be read or is no valid model; ``faults`` lists all that is wrong.
    """
    roots = [os.fspath(root) for root in external_roots]
    if isinstance(source, (str, os.PathLike)):
        if base_dir is not None:
            raise TypeError("`base_dir` goes with bytes: a file's payloads are looked up beside it")
        return Model(_native.Model.open(source, roots, allow_missing_files))
    return Model(_native.Model.from_bytes(source, base_dir, roots, allow_missing_files))


def from_onnx(
    model: Any,
    *,
    base_dir: str | os.PathLike[str] | None = None,
) -> Model:
    """A model of an ``onnx.ModelProto``, which is serialized once.

    Args:
        model: the message.
        base_dir: the folder of its external payloads.

    Raises:
        ModelError: it is no valid model.
    """
    return load(model.SerializeToString(), base_dir=base_dir)
