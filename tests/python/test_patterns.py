"""Patterns as exporters write them, and functions: each is recognized, and the model computes the same."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

import heirloom_cli

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

RANDOM = np.random.default_rng(3)


def noise(*shape: int) -> np.ndarray:
    return RANDOM.normal(0, 1, shape).astype(np.float32)


GELU = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 5] x) => (float[2, 5] y)
<float three = {3.0}, float small = {0.044715}, float root = {0.7978845608}, float one = {1.0}, float half = {0.5}> {
  cube = Pow(x, three)  term = Mul(cube, small)  sum = Add(x, term)  inside = Mul(sum, root)
  t = Tanh(inside)  more = Add(t, one)  scaled = Mul(x, more)  y = Mul(scaled, half)
}"""

RMS = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 5] x, float[5] w) => (float[2, 5] y)
<float two = {2.0}, float eps = {0.00001}> {
  squares = Pow(x, two)  mean = ReduceMean <axes = [-1]> (squares)  sum = Add(mean, eps)  root = Sqrt(sum)
  factor = Reciprocal(root)  normal = Mul(x, factor)  y = Mul(w, normal)
}"""

ROTARY = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 3, 8] x, float[1, 3, 4] angles) => (float[1, 2, 3, 8] y)
<int64[1] zero = {0}, int64[1] half = {4}, int64[1] end = {9223372036854775807}, int64[1] last = {3}, int64[1] one = {1}> {
  both = Concat <axis = -1> (angles, angles)  c = Cos(both)  s = Sin(both)
  cos = Unsqueeze(c, one)  sin = Unsqueeze(s, one)
  low = Slice(x, zero, half, last)  high = Slice(x, half, end, last)  minus = Neg(high)
  turned = Concat <axis = -1> (minus, low)  a = Mul(x, cos)  b = Mul(turned, sin)  y = Add(a, b)
}"""

ATTENTION = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 1, 4] q, float[1, 2, 1, 4] k, float[1, 2, 1, 4] v, float[1, 2, P, 4] pk, float[1, 2, P, 4] pv)
=> (float[1, 2, 1, 4] y, float[1, 2, N, 4] nk, float[1, 2, N, 4] nv)
<float scale = {2.0}> {
  nk = Concat <axis = 2> (pk, k)  nv = Concat <axis = 2> (pv, v)  kt = Transpose <perm = [0, 1, 3, 2]> (nk)
  raw = MatMul(q, kt)  scores = Div(raw, scale)  p = Softmax <axis = -1> (scores)  y = MatMul(p, nv)
}"""

FUNCTION = """<ir_version: 10, opset_import: ["" : 17, "local" : 1]> g (float[2, 5] x) => (float[2, 5] y) {
  a = local.twice <slope = 0.3> (x)  y = local.twice (a)
}
<opset_import: ["" : 17], domain: "local"> twice <slope: float = 0.1> (v) => (w) {
  b = LeakyRelu <alpha: float = @slope> (v)  w = Neg(b)
}"""

MOVEMENT = """<ir_version: 8, opset_import: ["" : 17]> g (float[N, 6, 4] x) => (float[N, 6, 4] y)
<int64[4] split = {0, 2, 3, 4}, int64[1] axis = {1}> {
  t = Transpose <perm = [0, 2, 1]> (x)  u = Transpose <perm = [0, 2, 1]> (t)  r = Reshape(u, split)
  s = Shape(x)  back = Reshape(r, s)  wide = Unsqueeze(back, axis)  narrow = Squeeze(wide, axis)  y = Neg(narrow)
}"""

PATTERNS = {
    "gelu": (GELU, {"x": noise(2, 5)}, ["Gelu"]),
    "rms-norm": (RMS, {"x": noise(2, 5), "w": noise(5)}, ["RMSNormalization"]),
    "rotary": (ROTARY, {"x": noise(1, 2, 3, 8), "angles": noise(1, 3, 4)}, ["Cos", "Sin", "RotaryEmbedding"]),
    "attention": (
        ATTENTION,
        {name: noise(1, 2, 1 if len(name) == 1 else 3, 4) for name in ("q", "k", "v", "pk", "pv")},
        ["Attention"],
    ),
    "inline": (FUNCTION, {"x": noise(2, 5)}, ["LeakyRelu", "Neg", "LeakyRelu", "Neg"]),
    "movement": (MOVEMENT, {"x": noise(3, 6, 4)}, ["Neg"]),
}


def optimize(source, target, *arguments: str) -> list[dict]:
    command = [str(heirloom_cli.binary()), "optimize", str(source), str(target), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(path, feeds, fuse: bool = True) -> list[np.ndarray]:
    options = ort.SessionOptions()
    if not fuse:
        # Else ONNX Runtime rounds activations to 8 bits before a product with dequantized weights.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def ours(path, feeds, folder) -> dict[str, np.ndarray]:
    data = folder / "data" / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    for at, (name, value) in enumerate(feeds.items()):
        (data / f"input_{at}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    heirloom_cli.run("run", path, "--data", folder / "data", "--save", folder / "out")
    read = [TensorProto.FromString(it.read_bytes()) for it in (folder / "out" / "test_data_set_0").glob("output_*.pb")]
    return {it.name: numpy_helper.to_array(it) for it in read}


# proves: GB5
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_recognized_and_computes_the_same(name, tmp_path):
    text, feeds, operators = PATTERNS[name]
    source, target = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(parser.parse_model(text), source)
    assert name in [report["pass"] for report in optimize(source, target)]
    onnx.checker.check_model(str(target), full_check=True)
    model = onnx.load(target)
    assert [node.op_type for node in model.graph.node] == operators
    assert not model.functions
    expected, names = theirs(source, feeds), [it.name for it in model.graph.output]
    found = ours(target, feeds, tmp_path)
    for output, a, b in zip(names, expected, theirs(target, feeds), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[output], a, rtol=1e-5, atol=1e-6)
    assert optimize(target, tmp_path / "again.onnx") == []


# proves: A7
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("bits", [4, 8])
def test_mat_mul_n_bits_becomes_a_product_with_an_affine_weight(rank, bits, tmp_path):
    rows, columns, block = 6, 64, 32
    codes = RANDOM.integers(0, 256, (rows, columns // block, block * bits // 8), np.uint8)
    scales = np.abs(noise(rows * columns // block))
    inputs = [("x", TensorProto.FLOAT, ["b", 3, columns][-rank:])]
    node = helper.make_node(
        "MatMulNBits", ["x", "codes", "scales"], ["y"], domain="com.microsoft", N=rows, K=columns, bits=bits, block_size=block
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(*it) for it in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", 3, rows][-rank:])],
        [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(scales, "scales")],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    source, target = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), source)
    assert "n-bits" in [report["pass"] for report in optimize(source, target)]
    feeds = {"x": noise(*([2, 3, columns][-rank:]))}
    (expected,) = theirs(source, feeds)
    np.testing.assert_allclose(ours(target, feeds, tmp_path)["y"], expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


# proves: A7
def test_weights_that_are_dequantized_become_affine_values_when_asked(tmp_path):
    codes = RANDOM.integers(-128, 128, (8, 5)).astype(np.int8)
    scales = np.abs(noise(5))
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scales"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5])],
        [numpy_helper.from_array(codes, "codes"), numpy_helper.from_array(scales, "scales")],
    )
    source, target, lowered = (tmp_path / f"{name}.onnx" for name in ("source", "target", "lowered"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    assert [report["pass"] for report in optimize(source, target, "--pass", "dequantize")] == ["dequantize"]
    feeds = {"x": noise(3, 8)}
    (expected,) = theirs(source, feeds, fuse=False)
    np.testing.assert_allclose(ours(target, feeds, tmp_path)["y"], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    # And back: the lowered model is standard ONNX with the same codes.
    heirloom_cli.run("convert", target, lowered, "--lower")
    assert [node.op_type for node in onnx.load(lowered).graph.node] == ["DequantizeLinear", "MatMul"]
    np.testing.assert_array_equal(theirs(lowered, feeds, fuse=False)[0], expected)
