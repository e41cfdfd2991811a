"""The native part. `Tensor`, `Encoded`, `CancelToken`, `Counts` and `Report` are public (`heirloom.Tensor`, …); the rest is
wrapped by the package's Python files and may change at any time."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from ._arrays import Array, Outputs

__all__ = [
    "Builder",
    "CancelToken",
    "Conversation",
    "Counts",
    "Encoded",
    "Function",
    "LanguageModel",
    "Model",
    "Report",
    "Session",
    "State",
    "StructType",
    "Tensor",
    "convert",
    "import_gguf",
    "infer",
    "optimize",
    "quantize",
]

@final
class Builder:
    def add_function(self, function: Any) -> None: ...
    def affine(self, name: str, codes: Any, storage: Any, scale: Any, zero_point: Any, axis: Any, block_size: Any, dtype: str | None, shape: Sequence[int] | None) -> str:
        """A constant of affine-quantized codes, packed as ONNX packs their type."""
    def bind(self, input: Any, output: Any) -> None: ...
    def body(self, name: str) -> Builder: ...
    def doc(self, text: str) -> None: ...
    def encoded(self, name: str, ty: Any, records: Any, dtype: str | None, shape: Sequence[int] | None) -> str:
        """A constant in records of a struct type."""
    def finish_function(self) -> Function:
        """The finished function."""
    def finish_model(self, base_dir: Any) -> Model:
        """The finished model; files of payloads are looked up in `base_dir`."""
    @staticmethod
    def for_function(domain: str, name: str, opsets: Any) -> Builder: ...
    @staticmethod
    def for_model(name: str, opsets: Any) -> Builder: ...
    def initializer(self, name: str, value: Any, fresh: Any) -> str:
        """A constant under this name; with `fresh`, under one that begins so."""
    def input(self, name: str, ty: Any) -> str: ...
    def metadata(self, key: str, value: Any) -> None: ...
    def node(self, op: str, inputs: Any, attributes: Any, outputs: list[str] | None, domain: str, name: str | None) -> list[str]:
        """Adds a node. Inputs are names, `None` where one is left out; outputs are names, or how many to make up."""
    def output(self, value: Any, ty: Any) -> None: ...
    def struct_type(self, ty: Any) -> None: ...

@final
class CancelToken:
    """Stops calls from outside. One token may be given to any number of calls."""

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None:
        """Stops the calls that hold this token, and later ones. May be called from any thread."""
    @property
    def cancelled(self) -> bool:
        """Whether a stop was asked for."""
    def reset(self) -> None:
        """Makes the token usable for later calls."""

@final
class Conversation:
    def advance(self) -> tuple[int, str] | None:
        """The next token and the text that is complete now; `None` at the end."""
    def begin(self, prompt: list[int], max_tokens: Any, temperature: Any, top_k: Any, top_p: Any, seed: Any, ignore_end: Any) -> None:
        """Feeds the prompt and begins to generate; `advance` goes on."""
    def end(self) -> tuple[str, dict[str, Any]] | None:
        """Ends the generation: the text that was held back and what it took. `None` where there is none."""
    def feed(self, tokens: list[int], all: Any, timeout: float | None) -> Array:
        """Feeds tokens and gives the logits behind the last one, or behind each."""
    def rewind_to(self, tokens: list[int]) -> list[int]:
        """Keeps what the state has seen of these tokens, and gives those that are still to be fed."""
    @property
    def seen(self) -> list[int]: ...
    def truncate(self, tokens: int) -> None: ...

@final
class Counts:
    """What calls did with memory."""

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the buffers newly allocated."""
    @property
    def allocations(self) -> int:
        """Buffers newly allocated."""
    @property
    def appended_bytes(self) -> int:
        """Bytes that appends wrote behind the rows that were there."""
    @property
    def cache_allocated_bytes(self) -> int:
        """Bytes of the caches newly allocated (capacity, not use)."""
    @property
    def cache_allocations(self) -> int:
        """Caches among the allocations."""
    @property
    def cache_copied_bytes(self) -> int:
        """Rows that were copied because a cache had to move."""
    @property
    def decoder_runs(self) -> int:
        """Decoders that came with a file and were run."""
    @property
    def kernel_copied_bytes(self) -> int:
        """Payload bytes that operators copied: making strided values dense, Concat, Gather, Transpose and the like."""
    @property
    def reuses(self) -> int:
        """Buffers taken again from a pool instead of being allocated."""
    @property
    def state_copied_bytes(self) -> int:
        """Payload bytes copied to manage state. Always 0."""

@final
class Encoded:
    """Bytes in a declared layout (a struct type's records, or affine codes), with the tensor that they stand for."""

    @property
    def address(self) -> int:
        """The address of the payload, to prove that two values share memory."""
    def decode(self) -> Array:
        """The tensor that the value stands for, computed by a codec or by the decoder that the file brings."""
    @property
    def dtype(self) -> str | None:
        """The ONNX element type of the tensor that it stands for, where it stands for one."""
    @property
    def fields(self) -> list[dict[str, Any]]:
        """The leaves of a record: path, element (an ONNX type, or a number of bits), bit offset, and count and distance in
        bits of each dimension. Empty for affine codes."""
    @property
    def layout(self) -> str:
        """The layout in words."""
    @property
    def name(self) -> str:
        """The value's name; may be empty."""
    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
    @property
    def payload(self) -> Array:
        """The payload as a read-only array of bytes, in place."""
    @property
    def record_bytes(self) -> int | None:
        """Bytes of one record; `None` for affine codes."""
    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the tensor that it stands for, where it stands for one."""
    @property
    def type_id(self) -> int | None:
        """The identity of the records' struct type; `None` for inline types and affine codes."""

@final
class Function:
    """Functions are taken by what they become part of."""

    ...

@final
class LanguageModel:
    @property
    def context(self) -> int: ...
    def conversation(self) -> Conversation: ...
    def decode(self, ids: list[int], skip_special: bool) -> str: ...
    def encode(self, text: str) -> list[int]: ...
    def encode_chat(self, messages: Any) -> list[int]: ...
    def encode_prompt(self, text: str) -> list[int]: ...
    @property
    def end_tokens(self) -> list[int]: ...
    @property
    def has_chat_template(self) -> bool: ...
    @staticmethod
    def open(path: Any, threads: int | None, context: int | None) -> LanguageModel: ...
    @property
    def threads(self) -> int: ...
    @property
    def weight_bytes(self) -> tuple[int, int]: ...

@final
class Model:
    @property
    def bindings(self) -> list[tuple[str, str]]: ...
    def edited(self, rename: Any, metadata: Any) -> Model:
        """The model with values renamed and annotations set (or, with None, removed)."""
    @staticmethod
    def from_bytes(data: Any, base_dir: Any, external_roots: Any, allow_missing_files: Any) -> Model: ...
    def initializer(self, name: str) -> Any:
        """A constant of the main graph, in place."""
    def initializers(self) -> list[str]:
        """The names of the main graph's constants."""
    def inspect(self) -> dict[str, Any]: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def name(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @staticmethod
    def open(path: Any, external_roots: Any, allow_missing_files: Any) -> Model: ...
    @property
    def path(self) -> os.PathLike[str] | None: ...
    def rebound(self, bind: Any, unbind: Any) -> Model:
        """The model with these bindings (input, output) added and those of these inputs removed."""
    def save(self, path: Any, external: str) -> None: ...
    def to_bytes(self) -> bytes: ...
    def verify(self) -> list[tuple[str, str]]: ...

@final
class Report:
    """What a session or a state holds and did."""

    @property
    def calls(self) -> int:
        """Calls that succeeded."""
    @property
    def counts(self) -> Counts:
        """Copies, appends, allocations and reuses of all calls so far, failed ones too."""
    @property
    def reserved_bytes(self) -> int:
        """Bytes of the buffers behind the retained values, reserved capacity of caches included."""
    @property
    def retained_bytes(self) -> int:
        """Bytes that the retained values hold. Values that share memory count each."""
    @property
    def scratch_bytes(self) -> int:
        """Bytes of working memory that the session keeps between calls, shared by all its states."""

@final
class Session:
    def __new__(cls, model: Model, *, threads: int | None, decode: Any, prepack: Any, reserve: Any, growth: Any) -> Session: ...
    def inputs(self) -> list[dict[str, Any]]: ...
    def load_state(self, path: str | os.PathLike[str]) -> State: ...
    def make_state(self, initial: Mapping[str, Any]) -> State: ...
    def outputs(self) -> list[dict[str, Any]]: ...
    def report(self) -> Report: ...
    def run(self, feeds: Mapping[str, Any], outputs: list[str] | None, cancel: CancelToken | None, timeout: float | None) -> Outputs: ...
    def state_spec(self) -> list[dict[str, Any]]: ...
    @property
    def threads(self) -> int: ...
    def trim(self) -> None: ...
    def zeros(self, extents: Any) -> dict[str, Any]: ...

@final
class State:
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    def fork(self) -> State: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def report(self) -> Report: ...
    def reset(self, initial: Mapping[str, Any]) -> None: ...
    def run(self, feeds: Mapping[str, Any], outputs: list[str] | None, cancel: CancelToken | None, timeout: float | None) -> Outputs: ...
    def truncate(self, rows: int) -> None: ...
    def values(self) -> dict[str, Any]: ...

@final
class StructType:
    """A declared struct type."""

    def __new__(cls, name: str, fields: Any, *, type_id: Any, decoder: Any, encoder: Any) -> StructType: ...
    @property
    def bit_size(self) -> int | None: ...
    @property
    def has_decoder(self) -> bool: ...
    @property
    def has_encoder(self) -> bool: ...
    def leaves(self) -> list[dict[str, Any]]: ...
    @property
    def name(self) -> str: ...
    @property
    def record_bytes(self) -> int: ...
    @property
    def type_id(self) -> int | None: ...

@final
class Tensor:
    """A tensor in memory that Heirloom owns or keeps alive. NumPy (`np.asarray`), PyTorch (`torch.from_dlpack`) and all that
    reads buffers or DLPack use the same memory. Elements of less than a byte are packed as ONNX packs them."""

    def __new__(cls, data: Any, *, dtype: str | None = None, shape: Sequence[int] | None = None) -> Tensor: ...
    def __array__(self, dtype: str | None = None, *, copy: bool | None = None) -> np.ndarray: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """A DLPack capsule over the same memory. From `max_version=(1, 0)` on it says whether the memory is read-only; for
        older consumers nothing does: they must not write to a tensor that is not `writable`."""
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    @property
    def address(self) -> int:
        """The address of the first element, to prove that two values share memory."""
    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one behind the other."""
    def copy(self) -> Any:
        """A dense copy of the elements, as an array that is the caller's alone (a tensor for packed elements)."""
    @property
    def dtype(self) -> str:
        """The ONNX element type, such as `FLOAT` or `BFLOAT16`."""
    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
    @property
    def place(self) -> str:
        """Where the memory is: `heap`, `mapped` (a file), `foreign` (another owner's), `append` (a cache that grows)."""
    def reshape(self, shape: Sequence[int] | None) -> Tensor:
        """The same elements in another shape, in the same memory."""
    def segments(self) -> list[Any]:
        """The stretches of memory that hold the rows of a cache, one behind the other along the axis that grows, each an array
        in place; one for other tensors."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
    @property
    def single(self) -> bool:
        """Whether the elements lie in one stretch of memory that strides describe. A cache that grew or was forked may lie in
        several `segments`."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """Distances of the elements along each axis in bytes; `None` for packed elements and for several segments."""
    @property
    def writable(self) -> bool:
        """Whether consumers may write: nothing else refers to the memory."""

def import_gguf(path: Any, output: Any, cache: str) -> os.PathLike[str]: ...
def quantize(
    model: Model,
    format: str,
    include: list[str],
    exclude: list[str],
    axis: int | None,
    block_size: int | None,
    threads: int | None,
) -> tuple[Model, list[dict[str, Any]], dict[str, str]]: ...
def convert(
    model: Model, lowered: bool, dense: bool
) -> tuple[Model | None, list[tuple[str, str]], list[tuple[str, str]]]: ...
def infer(
    model: Model, ignore_declared: bool
) -> tuple[dict[str, dict[str, str | None]], list[str], list[tuple[str, str, int]]]: ...
def optimize(model: Model, passes: list[str] | None) -> tuple[Model, list[dict[str, Any]]]: ...
