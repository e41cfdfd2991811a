"""GGUF files as models whose weights stay in the file."""

from __future__ import annotations

import os

from . import _native

__all__ = ["import_model"]


def import_model(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    cache: str = "float16",
) -> str:
    """Writes the model that a GGUF file holds: a small ``.onnx`` whose weights are the bytes of that file, which is neither
    changed nor copied.

    Args:
        path: the ``.gguf``.
        output: the file to write; None is the same name with ``.onnx``, beside it. It must be in the folder of the GGUF
            file or in one above.
        cache: the element type of the caches: ``"float16"``, ``"bfloat16"`` or ``"float32"``.

    Returns:
        the path of the model, for `heirloom.load` and `heirloom.llm.load`.

    Raises:
        GgufError: the file is not as it should be, or its architecture is not known; the message names those that are.
    """
    return os.fspath(_native.import_gguf(path, output, cache))
