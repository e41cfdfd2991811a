"""Imported graphs are standard ONNX: with weights made dense, the `onnx` package checks them and ONNX Runtime computes
what NumPy computes from the same weights. The models are tiny and random, so every architecture has its turn."""

from __future__ import annotations

import gguf
import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
from onnx import numpy_helper

import heirloom_cli
from conftest import isa_levels

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, VOCABULARY = 7, 64, 4, 2, 16, 96, 50
EPSILON, BASE = 1e-5, 5e4
Q8_0 = gguf.GGMLQuantizationType.Q8_0

# What each model states beyond the common numbers.
VARIANTS = {
    "llama": ("llama", {}),
    "llama with a divisor per pair": ("llama", {}),
    "llama, scaled linearly": ("llama", {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    "qwen2": ("qwen2", {}),
    "qwen2, scaled by YaRN": (
        "qwen2",
        {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32},
    ),
    "qwen3": ("qwen3", {}),
    "gemma3": ("gemma3", {"attention.sliding_window": 5}),
}


def write(path, variant: str) -> None:
    architecture, extra = VARIANTS[variant]
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(str(path), architecture)
    numbers = {
        "block_count": LAYERS,
        "context_length": 128,
        "embedding_length": WIDTH,
        "feed_forward_length": HIDDEN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.layer_norm_rms_epsilon": EPSILON,
        "rope.freq_base": BASE,
        **extra,
    }
    for name, value in numbers.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
        add(f"{architecture}.{name}", value)

    def add(name: str, *shape: int, quantized: bool = False) -> None:
        values = random.normal(0, shape[-1] ** -0.5, shape) if len(shape) > 1 else random.normal(1, 0.3, shape)
        values = values.astype(np.float32)
        if quantized:
            writer.add_tensor(name, gguf.quantize(values, Q8_0), raw_dtype=Q8_0)
        else:
            writer.add_tensor(name, values)

    add("token_embd.weight", VOCABULARY, WIDTH, quantized=True)
    add("output_norm.weight", WIDTH)
    if architecture == "qwen2":
        add("output.weight", VOCABULARY, WIDTH)
    if variant.endswith("per pair"):
        add("rope_freqs.weight", HEAD // 2)
    for layer in range(LAYERS):
        for name, rows in [("attn_q", HEADS * HEAD), ("attn_k", KV_HEADS * HEAD), ("attn_v", KV_HEADS * HEAD)]:
            add(f"blk.{layer}.{name}.weight", rows, WIDTH, quantized=name != "attn_k")
            if architecture == "qwen2":
                add(f"blk.{layer}.{name}.bias", rows)
        add(f"blk.{layer}.attn_output.weight", WIDTH, HEADS * HEAD)
        add(f"blk.{layer}.ffn_gate.weight", HIDDEN, WIDTH, quantized=True)
        add(f"blk.{layer}.ffn_up.weight", HIDDEN, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, HIDDEN, quantized=True)
        norms = ["attn_norm", "ffn_norm"]
        if architecture == "gemma3":
            norms += ["post_attention_norm", "post_ffw_norm"]
        for norm in norms:
            add(f"blk.{layer}.{norm}.weight", WIDTH)
        if architecture in ("qwen3", "gemma3"):
            add(f"blk.{layer}.attn_q_norm.weight", HEAD)
            add(f"blk.{layer}.attn_k_norm.weight", HEAD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Reference:
    """The models in float64."""

    def __init__(self, path, variant: str):
        self.architecture, self.extra = VARIANTS[variant]
        reader = gguf.GGUFReader(str(path))
        self.weights = {
            t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64).reshape(t.shape[::-1].tolist())
            for t in reader.tensors
        }

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * self.weights[f"{name}.weight"]

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def angles(self, tokens: int, is_local: bool):
        pair = np.arange(HEAD // 2)
        base, magnitude = (10000.0 if is_local else BASE), 1.0
        frequencies = base ** (-2.0 * pair / HEAD)
        scaling = None if is_local else self.extra.get("rope.scaling.type")
        if scaling == "linear":
            frequencies /= 4
        if scaling == "yarn":
            # The pairs that turn 32 times and once within the 32 original positions; those between are mixed.
            turning = [HEAD * np.log(32 / (turns * 2 * np.pi)) / (2 * np.log(base)) for turns in (32, 1)]
            first, last = max(np.floor(turning[0]), 0), min(np.ceil(turning[1]), HEAD - 1)
            kept = 1 - np.clip((pair - first) / max(last - first, 0.001), 0, 1)
            frequencies = frequencies / 4 * (1 - kept) + frequencies * kept
            magnitude = 1 + 0.1 * np.log(4)
        frequencies = frequencies / self.weights.get("rope_freqs.weight", 1)
        angles = np.arange(tokens)[:, None] * frequencies
        return np.cos(angles) * magnitude, np.sin(angles) * magnitude

    def rotate(self, x, angles):
        """[tokens, heads, size]."""
        cos, sin = (part[:, None, :] for part in angles)
        even = np.s_[..., 0::2] if self.architecture == "llama" else np.s_[..., : HEAD // 2]
        odd = np.s_[..., 1::2] if self.architecture == "llama" else np.s_[..., HEAD // 2 :]
        out = np.empty_like(x)
        out[even] = x[even] * cos - x[odd] * sin
        out[odd] = x[odd] * cos + x[even] * sin
        return out

    def attention(self, x, layer: int):
        window = self.extra.get("attention.sliding_window")
        is_local = window is not None and (layer + 1) % 6 != 0
        tokens, block = len(x), f"blk.{layer}"
        q = self.linear(x, f"{block}.attn_q").reshape(tokens, HEADS, HEAD)
        k = self.linear(x, f"{block}.attn_k").reshape(tokens, KV_HEADS, HEAD)
        v = self.linear(x, f"{block}.attn_v").reshape(tokens, KV_HEADS, HEAD)
        if self.architecture in ("qwen3", "gemma3"):
            q, k = self.norm(q, f"{block}.attn_q_norm"), self.norm(k, f"{block}.attn_k_norm")
        angles = self.angles(tokens, is_local)
        q, k = self.rotate(q, angles), self.rotate(k, angles)
        k, v = (np.repeat(part, HEADS // KV_HEADS, axis=1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(HEAD)
        distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
        hidden = (distance < 0) | (is_local & (distance >= (window or 0)))
        scores = np.where(hidden, -np.inf, scores)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        out = np.einsum("hqk,khd->qhd", scores, v).reshape(tokens, -1)
        return self.linear(out, f"{block}.attn_output")

    def feed_forward(self, x, layer: int):
        gate = self.linear(x, f"blk.{layer}.ffn_gate")
        if self.architecture == "gemma3":
            gate = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        return self.linear(gate * self.linear(x, f"blk.{layer}.ffn_up"), f"blk.{layer}.ffn_down")

    def logits(self, ids):
        x = self.weights["token_embd.weight"][ids]
        is_gemma = self.architecture == "gemma3"
        if is_gemma:
            x = x * np.sqrt(WIDTH)
        for layer in range(LAYERS):
            block = f"blk.{layer}"
            y = self.attention(self.norm(x, f"{block}.attn_norm"), layer)
            x = x + (self.norm(y, f"{block}.post_attention_norm") if is_gemma else y)
            y = self.feed_forward(self.norm(x, f"{block}.ffn_norm"), layer)
            x = x + (self.norm(y, f"{block}.post_ffw_norm") if is_gemma else y)
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return self.norm(x, "output_norm") @ head.T


def densified(path, weights) -> onnx.ModelProto:
    """The model without our fields, every weight a dense initializer."""
    model = onnx.load(str(path), load_external_data=False)
    model.DiscardUnknownFields()
    for each in [each for each in model.graph.initializer if each.name in weights]:
        model.graph.initializer.remove(each)
    for name in {name for node in model.graph.node for name in node.input} & weights.keys():
        model.graph.initializer.append(numpy_helper.from_array(weights[name].astype(np.float32), name))
    return model


@pytest.mark.parametrize("variant", VARIANTS)
def test_imported_graphs_compute_what_their_architecture_says(variant, tmp_path):
    path = tmp_path / "tiny.gguf"
    write(path, variant)
    overlay = heirloom_cli.overlay(path, "--cache", "f32")
    reference = Reference(path, variant)
    model = densified(overlay, reference.weights)
    onnx.checker.check_model(model, full_check=True)
    types = {each.name: each.type.tensor_type for each in onnx.shape_inference.infer_shapes(
        model, strict_mode=True, data_prop=True).graph.value_info}
    assert [dim.dim_value for dim in types["flat_logits"].shape.dim][1] == VOCABULARY
    assert sum(node.op_type == "Attention" for node in model.graph.node) == LAYERS

    ids = np.random.default_rng(1).integers(0, VOCABULARY, 20)
    expected = reference.logits(ids)
    evaluator = run_with(model)
    whole = evaluator(ids, 0, None)
    np.testing.assert_allclose(whole["logits"][0], expected, atol=2e-4)

    # In pieces, each continuing from the caches that the one before gave; only the last tokens' logits.
    caches, rows = None, []
    for first, last in [(0, 7), (7, 8), (8, 20)]:
        outputs = evaluator(ids[first:last], 1, caches)
        assert outputs["logits"].shape == (1, 1, VOCABULARY)
        caches = {n.replace("present", "past_key_values"): v for n, v in outputs.items() if n != "logits"}
        rows.append(outputs["logits"][0, 0])
    np.testing.assert_allclose(rows, expected[[6, 7, 19]], atol=2e-4)


def run_with(model: onnx.ModelProto):
    """ONNX Runtime on the model; where it lacks the operator set, the reference of the `onnx` package."""
    names = [output.name for output in model.graph.output]
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        run = session.run
    except Exception as error:  # noqa: BLE001 - the runtime raises classes of its own
        if model.opset_import[0].version <= 24:
            raise error
        run = onnx.reference.ReferenceEvaluator(model).run

    def call(ids, keep: int, caches):
        empty = np.zeros((1, KV_HEADS, 0, HEAD), np.float32)
        caches = caches or {
            f"past_key_values.{layer}.{kind}": empty for layer in range(LAYERS) for kind in ("key", "value")
        }
        feeds = {"input_ids": np.asarray(ids, np.int64)[None], "logits_to_keep": np.array(keep), **caches}
        return dict(zip(names, run(None, feeds)))

    return call


@pytest.mark.parametrize("variant", VARIANTS)
def test_heirloom_computes_what_their_architecture_says(variant, tmp_path):
    path, out = tmp_path / "tiny.gguf", tmp_path / "logits.npy"
    write(path, variant)
    ids = np.random.default_rng(3).integers(0, VOCABULARY, 12)
    expected = Reference(path, variant).logits(ids)
    overlay = heirloom_cli.overlay(path, "--cache", "f32")
    tokens = ",".join(map(str, ids))
    for level in isa_levels():
        heirloom_cli.run("logits", overlay, "--tokens", tokens, "--out", out, environment={"HEIRLOOM_ISA": level})
        actual = np.load(out)
        cosine = (actual * expected).sum(-1) / np.linalg.norm(actual, axis=-1) / np.linalg.norm(expected, axis=-1)
        assert cosine.min() >= 0.9995, level
        if level == "portable":
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-3)
