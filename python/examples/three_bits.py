"""A quantization format of one's own: 32 codes of 3 bits and a scale, its decoder written in NumPy-like graph calls.

    python python/examples/three_bits.py [OUTPUT.onnx]

The decoder goes into the model file. Whoever opens it, without having heard of the format, can look at its layout, decode
the weights, and run the model.
"""

from __future__ import annotations

import sys

import heirloom
import numpy as np


class Q3(heirloom.Struct, type_id=990_003, name="q3_example"):
    """``scale * (code - 4)``: 14 bytes for 32 elements, 3.5 bits each."""

    scale = heirloom.Field(np.float16)
    codes = heirloom.Bits(3, count=32)

    @heirloom.decoder
    def decode(g, records):
        scale = g.op.Cast(g.field(records, "scale"), to=np.float32)
        codes = g.op.Cast(g.field(records, "codes", "bits"), to=np.float32)
        return (codes - 4.0) * g.op.Reshape(scale, np.array([0, 1]))


def encode(weights: np.ndarray) -> np.ndarray:
    """The records of weights whose elements are a multiple of 32, in row-major order."""
    blocks = weights.reshape(-1, 32).astype(np.float32)
    extreme = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1, keepdims=True), axis=1)
    scale = (extreme / -4).astype(np.float16)
    inverse = np.divide(1, scale, out=np.zeros_like(scale, np.float32), where=scale != 0, dtype=np.float32)
    codes = np.clip(np.round(blocks * inverse + 4), 0, 7).astype(np.uint8)
    bits = (codes[:, :, None] >> np.arange(3, dtype=np.uint8)) & 1
    packed = np.packbits(bits.reshape(len(blocks), -1), axis=1, bitorder="little")
    records = np.empty(len(blocks), np.dtype([("scale", np.float16), ("codes", np.uint8, 12)]))
    records["scale"], records["codes"] = scale[:, 0], packed
    return records


def build(weights: np.ndarray) -> heirloom.Model:
    """y = x @ weights, with the weights in the format."""
    g = heirloom.GraphBuilder("three_bits")
    x = g.input("x", np.float32, ["n", weights.shape[0]])
    w = g.encoded("w", Q3, encode(weights), np.float32, weights.shape)
    g.output(g.op.MatMul(x, w, outputs=["y"]), np.float32, ["n", weights.shape[1]])
    return g.build()


def main(output: str | None = None) -> float:
    weights = np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32)
    model = build(weights)
    print(Q3.layout)
    if output is not None:
        model.save(output)
        model = heirloom.load(output)
    decoded = model.initializer("w").decode()
    x = np.eye(64, dtype=np.float32)
    y = heirloom.Session(model, decode="on_demand").run({"x": x})["y"]
    assert np.array_equal(y, decoded), "the session decodes with the decoder of the file"
    error = float(np.sqrt(np.mean((decoded - weights) ** 2)) / np.sqrt(np.mean(weights**2)))
    print(f"{model.initializer('w')}: RMS error {100 * error:.1f} % of the weights' RMS")
    return error


if __name__ == "__main__":
    main(*sys.argv[1:2])
