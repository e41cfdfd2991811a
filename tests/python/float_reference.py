"""Logits of a GGUF language model computed in float32 from its dequantized weights.

The oracle for Heirloom's own runs: NumPy does the arithmetic and the PyPI package ``gguf`` reads and
dequantizes, so nothing of Heirloom takes part. Architectures: ``llama`` and ``qwen2``.

    python float_reference.py MODEL.gguf 504 3575 282

prints the five best next tokens after each given token.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

import gguf
import numpy as np


@dataclass(frozen=True)
class Architecture:
    """How an architecture departs from the common decoder: pre-norm, grouped attention, SwiGLU."""

    # GGUF's "NORM" rotates the pairs (0, 1), (2, 3), …; "NEOX" the pairs (i, i + half).
    rotates_halves: bool


ARCHITECTURES = {
    "llama": Architecture(rotates_halves=False),
    "qwen2": Architecture(rotates_halves=True),
}


class FloatReference:
    """A model file, open for reading. Weights are dequantized when a layer needs them and dropped after it."""

    def __init__(self, path: str | Path):
        self.reader = gguf.GGUFReader(str(path))
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}
        name = self.reader.fields["general.architecture"].contents()
        if name not in ARCHITECTURES:
            raise ValueError(f"{path}: architecture `{name}` is not one of {sorted(ARCHITECTURES)}")
        if any(".rope.scaling." in key for key in self.reader.fields) or "rope_freqs.weight" in self.tensors:
            raise ValueError(f"{path}: scaled rotary embeddings are not computed here")
        self.architecture = ARCHITECTURES[name]
        self.prefix = name
        self.layers = self._number("block_count")
        self.heads = self._number("attention.head_count")
        self.kv_heads = self._number("attention.head_count_kv", self.heads)
        self.epsilon = np.float32(self._number("attention.layer_norm_rms_epsilon"))
        self.width = self._number("embedding_length")
        self.head_width = self._number("attention.key_length", self.width // self.heads)
        self.rotary_width = self._number("rope.dimension_count", self.head_width)
        self.rotary_base = self._number("rope.freq_base", 10000.0)

    def logits(self, sequences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """For each sequence of token ids the logits after each of its tokens: float32 [tokens, vocabulary]."""
        embedding = self.tensors["token_embd.weight"]
        states = [
            gguf.dequantize(embedding.data[np.asarray(ids)], embedding.tensor_type).astype(np.float32)
            for ids in sequences
        ]
        for layer in range(self.layers):
            weights = _Layer(self, layer)
            states = [self._decoder_layer(weights, state) for state in states]
        norm = self.weight("output_norm.weight")
        output = "output.weight" if "output.weight" in self.tensors else "token_embd.weight"
        head = self.weight(output)
        return [rms_norm(state, norm, self.epsilon) @ head.T for state in states]

    def weight(self, name: str) -> np.ndarray:
        """A whole tensor in float32, [out, in] for a matrix."""
        tensor = self.tensors[name]
        return gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)

    def _number(self, key: str, default=None):
        field = self.reader.fields.get(f"{self.prefix}.{key}")
        if field is not None:
            return field.contents()
        if default is None:
            raise ValueError(f"the file has no `{self.prefix}.{key}`")
        return default

    def _decoder_layer(self, weights: "_Layer", state: np.ndarray) -> np.ndarray:
        x = rms_norm(state, weights["attn_norm"], self.epsilon)
        query = self._rotate(self._split(weights.linear("attn_q", x), self.heads))
        key = self._rotate(self._split(weights.linear("attn_k", x), self.kv_heads))
        value = self._split(weights.linear("attn_v", x), self.kv_heads)
        state = state + weights.linear("attn_output", causal_attention(query, key, value))
        x = rms_norm(state, weights["ffn_norm"], self.epsilon)
        gate = weights.linear("ffn_gate", x)
        gate = gate / (1 + np.exp(-gate))
        return state + weights.linear("ffn_down", gate * weights.linear("ffn_up", x))

    def _split(self, x: np.ndarray, heads: int) -> np.ndarray:
        """[tokens, heads · width] to [heads, tokens, width]."""
        return x.reshape(len(x), heads, -1).transpose(1, 0, 2)

    def _rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotary position embedding of [heads, tokens, width]: pair i turns by position · base^(−2i / width)."""
        half = self.rotary_width // 2
        frequencies = self.rotary_base ** (-np.arange(half, dtype=np.float64) * 2 / self.rotary_width)
        angles = np.arange(x.shape[1], dtype=np.float64)[:, None] * frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        if self.architecture.rotates_halves:
            first, second = np.s_[..., :half], np.s_[..., half : 2 * half]
        else:
            first, second = np.s_[..., 0 : 2 * half : 2], np.s_[..., 1 : 2 * half : 2]
        out = x.copy()
        out[first] = x[first] * cos - x[second] * sin
        out[second] = x[first] * sin + x[second] * cos
        return out


class _Layer:
    """The weights of one decoder layer in float32."""

    def __init__(self, model: FloatReference, index: int):
        self.prefix = f"blk.{index}."
        own = [name for name in model.tensors if name.startswith(self.prefix)]
        self.weights = {name.removeprefix(self.prefix): model.weight(name) for name in own}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.weights[f"{name}.weight"]

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        y = x @ self[name].T
        bias = self.weights.get(f"{name}.bias")
        return y if bias is None else y + bias


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: np.float32) -> np.ndarray:
    """x / sqrt(mean(x²) + epsilon) · weight over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def causal_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """[heads, tokens, width] each (K and V with fewer heads, shared in groups) to [tokens, heads · width]."""
    group = len(query) // len(key)
    key, value = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
    scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
    tokens = scores.shape[-1]
    scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    return (scores @ value).transpose(1, 0, 2).reshape(tokens, -1)


def main(arguments: Sequence[str]) -> None:
    path, *ids = arguments
    for token, row in zip(ids, FloatReference(path).logits([[int(token) for token in ids]])[0]):
        best = np.argsort(row)[::-1][:5]
        print(token, "->", ", ".join(f"{index} ({row[index]:.3f})" for index in best))


if __name__ == "__main__":
    main(sys.argv[1:])
