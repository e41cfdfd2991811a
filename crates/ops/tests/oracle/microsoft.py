#!/usr/bin/env python3
"""Records what ONNX Runtime computes for operators of com.microsoft and ai.onnx.ml.

usage: microsoft.py > microsoft.jsonl        needs: onnx numpy onnxruntime (recorded with 1.31.1)

A line is a case as in record.py. Graphs are not optimized, so that the operator itself computes.
"""

import json
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(5)
F16, F32 = np.float16, np.float32
ML = "ai.onnx.ml"


def show(array):
    if isinstance(array, Packed):
        return [array.kind, list(array.shape), array.codes.tobytes().hex()]
    tensor = numpy_helper.from_array(np.ascontiguousarray(array))
    return [tensor.data_type, list(np.shape(array)), tensor.raw_data.hex()]


class Packed:
    """Codes of 4 bits, two in a byte."""

    def __init__(self, kind, shape):
        self.kind, self.shape = kind, shape
        self.codes = rng.integers(0, 256, -(-int(np.prod(shape)) // 2)).astype(np.uint8)


def case(op, inputs, outputs=1, domain="com.microsoft", close=None, **attributes):
    names = ["" if value is None else f"i{at}" for at, value in enumerate(inputs)]
    results = [f"o{at}" for at in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    given = [(name, value) for name, value in zip(names, inputs) if name]
    fed = {name: value for name, value in given if not isinstance(value, Packed)}
    constants = [
        helper.make_tensor(name, value.kind, value.shape, value.codes.tobytes(), raw=True)
        for name, value in given
        if isinstance(value, Packed)
    ]
    graph = helper.make_graph(
        [node],
        "case",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in fed.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
        constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Sums of 8-bit products that do not saturate, whatever the processor.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        computed = session.run(None, fed)
    except Exception as error:
        print(f"{op} {attributes}: {error}", file=sys.stderr)
        return
    line = {
        "op": op if domain == "" else f"{domain}.{op}",
        "version": {"": 21, ML: 3}.get(domain, 1),
        "attributes": attributes,
        "inputs": [None if value is None else show(value) for value in inputs],
        "outputs": [] if op == "ZipMap" else [show(value) for value in computed],
    }
    if op == "ZipMap":
        line["maps"] = [sorted(row.items()) for row in computed[0]]
    if close is not None:
        line["close"] = close
    print(json.dumps(line), flush=True)


def real(*shape, dtype=F32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def whole(*shape, dtype=np.uint8, low=0, high=256):
    return rng.integers(low, high, shape).astype(dtype)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def mat_mul_n_bits():
    def one(bits, block, k, n, lead=(3,), zero=None, bias=False, groups=None, dtype=F32, flat=False):
        blocks = -(-k // block)
        scales = real(n, blocks, dtype=dtype, scale=0.05)
        points = {
            None: None,
            "packed": whole(n, -(-blocks * bits // 8)),
            "numbers": whole(n, blocks, high=1 << bits).astype(dtype),
        }[zero]
        if flat:
            scales, points = scales.reshape(-1), None if points is None else points.reshape(-1)
        order = None
        if groups is not None:
            order = groups(k, block, blocks).astype(np.int32)
        inputs = [real(*lead, k, dtype=dtype), whole(n, blocks, block * bits // 8), scales, points, order]
        inputs += [real(n, dtype=dtype) if bias else None]
        while inputs[-1] is None:
            inputs.pop()
        case("MatMulNBits", inputs, K=k, N=n, bits=bits, block_size=block)

    for bits in (2, 4, 8):
        one(bits, 32, 64, 5)
        one(bits, 16, 80, 3, zero="packed", bias=True)
        one(bits, 32, 96, 6, zero="packed", lead=(2, 2), flat=True)
        one(bits, 128, 128, 4, lead=(1,))
        # Rows that end within a block.
        one(bits, 32, 40, 3, zero="packed")
        one(bits, 64, 200, 2, bias=True)
    one(4, 32, 64, 5, zero="numbers")
    one(4, 32, 128, 4, groups=lambda k, block, blocks: rng.integers(0, blocks, k))
    one(4, 32, 64, 4, groups=lambda k, block, blocks: np.arange(k)[::-1] // block)
    one(4, 32, 64, 5, zero="packed", dtype=F16, bias=True)
    one(8, 64, 128, 3, dtype=F16)


def simplified_layer_normalization():
    for dtype in (F32, F16):
        case("SimplifiedLayerNormalization", [real(2, 3, 8, dtype=dtype), real(8, dtype=dtype)], domain="")
        case(
            "SimplifiedLayerNormalization",
            [real(2, 3, 5, dtype=dtype, scale=1e-3), real(5, dtype=dtype)],
            domain="",
            axis=-1,
            epsilon=1e-6,
            stash_type=1,
        )
    case("SimplifiedLayerNormalization", [real(2, 3, 8), real(8)], outputs=2, domain="")
    case("SimplifiedLayerNormalization", [real(2, 3, 4), real(3, 4)], outputs=2, domain="", axis=1)


def rotary_embedding():
    def angles(positions, pairs, dtype=F32):
        angle = np.outer(np.arange(positions), 1 / 100 ** (np.arange(pairs) / pairs))
        return [np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)]

    for interleaved in (0, 1):
        given = {"interleaved": interleaved}
        case("RotaryEmbedding", [real(2, 3, 16), ints(0), *angles(8, 4)], **given)
        case("RotaryEmbedding", [real(2, 3, 16), ints(5), *angles(8, 4)], **given)
        case("RotaryEmbedding", [real(2, 3, 16), ints([0, 4, 7], [2, 2, 1]), *angles(8, 4)], **given)
        case("RotaryEmbedding", [real(2, 2, 3, 8), ints([0, 4, 7], [2, 2, 1]), *angles(8, 4)], **given)
        case("RotaryEmbedding", [real(1, 3, 16, dtype=F16), ints(2), *angles(8, 4, F16)], **given)
        partial = given | {"num_heads": 2, "rotary_embedding_dim": 4}
        case("RotaryEmbedding", [real(1, 3, 16), ints(1), *angles(8, 2)], **partial)
        case("RotaryEmbedding", [real(1, 2, 3, 8), ints(1), *angles(8, 2)], **partial)


def gather_block_quantized():
    for kind in (TensorProto.UINT4, TensorProto.INT4):
        for zero in (False, True):
            for dtype in (F32, F16):
                points = Packed(kind, (5, 3)) if zero else None
                inputs = [Packed(kind, (5, 40)), ints([1, 4], [0, -2]), real(5, 3, dtype=dtype), points]
                case("GatherBlockQuantized", inputs[: 3 + zero], block_size=16)
        inputs = [Packed(kind, (40, 6)), ints(1, 4, dtype=np.int32), real(3, 6), Packed(kind, (3, 6))]
        case("GatherBlockQuantized", inputs, block_size=16, gather_axis=1, quantize_axis=0)
        inputs = [Packed(kind, (2, 20, 6)), ints(1, 0), real(2, 2, 6)]
        case("GatherBlockQuantized", inputs, block_size=16, gather_axis=0, quantize_axis=1)
    for bits in (2, 4, 8):
        for blocks in (2, 3):
            shape = (5, blocks * 16 * bits // 8)
            inputs = [whole(*shape), ints([1, 4], [0, -1]), real(5, blocks)]
            given = {"bits": bits, "block_size": 16, "quantize_axis": 1}
            case("GatherBlockQuantized", inputs, **given)
            case("GatherBlockQuantized", [*inputs, whole(5, -(-blocks * bits // 8))], **given)


def fused_gemm():
    a, b = real(3, 5), real(5, 4)
    for activation, parameters in [
        ("Relu", {}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("LeakyRelu", {"activation_alpha": 0.25}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    ]:
        case("FusedGemm", [a, b, real(4)], activation=activation, **parameters)
    case("FusedGemm", [a.T.copy(), b.T.copy(), real(3, 1)], transA=1, transB=1, alpha=0.5, beta=2.0, activation="Relu")
    case("FusedGemm", [a, b], activation="Relu")


def quantized(*shape, kind=np.uint8):
    """A tensor, its scale and its zero point."""
    info = np.iinfo(kind)
    scale = np.array(rng.uniform(0.01, 0.1), F32)
    return [whole(*shape, dtype=kind, low=info.min, high=info.max + 1), scale, whole(dtype=kind, low=info.min, high=info.max)]


def q_linear():
    for kind in (np.uint8, np.int8):
        out = quantized(kind=kind)[1:]
        case("QLinearConcat", [*out, *quantized(2, 3, 4, kind=kind), *quantized(2, 1, 4, kind=kind)], axis=1)
        case("QLinearConcat", [*out, *quantized(2, 3, kind=kind), *quantized(1, 3, kind=kind), *quantized(4, 3, kind=kind)], axis=-2)
        small = np.array(1 / 256, F32)
        zero = np.array(np.iinfo(kind).min, kind)
        for opset, axis in [(13, -1), (13, 1), (12, 1), (12, -1)]:
            case("QLinearSoftmax", [*quantized(2, 3, 5, kind=kind), small, zero], axis=axis, opset=opset)
        for given in [
            {"kernel_shape": [2, 2]},
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER", "strides": [2, 1]},
            {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        ]:
            case("QLinearAveragePool", [*quantized(1, 3, 5, 6, kind=kind), *out], **given)
            case("QLinearAveragePool", [*quantized(1, 5, 6, 3, kind=kind), *out], channels_last=1, **given)
        x = quantized(2, 5, 6, 3, kind=kind)[0]
        case("NhwcMaxPool", [x], kernel_shape=[2, 3])
        case("NhwcMaxPool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        case("NhwcMaxPool", [x], kernel_shape=[2, 2], dilations=[2, 2])


def attention():
    def weights(width, total, dtype=F32):
        return [real(width, total, dtype=dtype, scale=0.4), real(total, dtype=dtype)]

    x = real(2, 3, 8)
    w = weights(8, 24)
    i32 = np.int32
    case("Attention", [x, *w], num_heads=2)
    case("Attention", [x, *w], num_heads=4, scale=0.7)
    case("Attention", [x, *w], num_heads=2, unidirectional=1)
    case("Attention", [x, *w, ints([1, 1, 0], [1, 0, 0], dtype=i32)], num_heads=2)
    case("Attention", [x, *w, ints(2, 3, dtype=i32)], num_heads=2)
    case("Attention", [x, *w, ints(2, 3, 1, 0, dtype=i32)], num_heads=2)
    case("Attention", [x, *w, whole(2, 3, 3, dtype=i32, high=2)], num_heads=2, mask_filter_value=-5.0)
    case("Attention", [x, *weights(8, 20)], num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    past = real(2, 2, 2, 4, 4)
    case("Attention", [x, *w, None, past], outputs=2, num_heads=2)
    case("Attention", [x, *w, ints([1] * 7, [1] * 5 + [0] * 2, dtype=i32), past], outputs=2, num_heads=2, unidirectional=1)
    case("Attention", [x, *w, None, None, real(1, 2, 3, 3)], num_heads=2)
    case("Attention", [x, *w, None, None, real(2, 1, 3, 3)], num_heads=2)

    q, k, v = real(2, 3, 8), real(2, 5, 8), real(2, 5, 4)
    case("MultiHeadAttention", [q, k, v], num_heads=2)
    case("MultiHeadAttention", [q, k, v], num_heads=2, scale=0.3)
    case("MultiHeadAttention", [q, k, v, real(20)], num_heads=2)
    # Where all keys are left out, what ONNX Runtime gives is made of the rounding of -10000.
    for shape in [(2, 5), (2, 3, 5)]:
        mask = whole(*shape, dtype=i32, high=2)
        mask[..., 0] = 1
        case("MultiHeadAttention", [q, k, v, None, mask], num_heads=2)
    case("MultiHeadAttention", [q, k, v, None, ints(5, 2, dtype=i32)], num_heads=2)
    case("MultiHeadAttention", [q, k, v, None, None, real(1, 2, 3, 5)], num_heads=2)
    case("MultiHeadAttention", [q, k, v, None, None, real(2, 2, 3, 5)], num_heads=2, mask_filter_value=-3.0)
    case("MultiHeadAttention", [q, real(2, 3, 8), real(2, 3, 8)], num_heads=2, unidirectional=1)
    case("MultiHeadAttention", [q, real(2, 2, 5, 4), real(2, 2, 5, 4)], num_heads=2)
    own = [q, real(2, 3, 8), real(2, 3, 8)]
    past = [real(2, 2, 4, 4), real(2, 2, 4, 4)]
    case("MultiHeadAttention", [*own, None, None, None, *past], outputs=3, num_heads=2)
    case("MultiHeadAttention", [*own, real(24), None, None, *past], outputs=3, num_heads=2, unidirectional=1)
    case("MultiHeadAttention", own, outputs=3, num_heads=2)

    for kind in (np.uint8, np.int8):
        for per_column in (False, True):
            count = (24,) if per_column else ()
            x = whole(2, 3, 8)
            w = whole(8, 24, dtype=kind, low=np.iinfo(kind).min, high=np.iinfo(kind).max)
            scales = [np.array(0.02, F32), (rng.uniform(0.005, 0.02, count)).astype(F32)]
            points = [np.array(120, np.uint8), np.full(count, 3, kind)]
            inputs = [x, w, real(24), *scales]
            case("QAttention", [*inputs, None, *points], num_heads=2, close=1e-4)
            case("QAttention", [*inputs, ints(2, 3, dtype=i32), *points], num_heads=2, unidirectional=1, close=1e-4)
            case("QAttention", [*inputs, None, *points, real(2, 2, 2, 4, 4)], outputs=2, num_heads=2, close=1e-4)


def embed_layer_normalization():
    i32 = np.int32
    tables = [real(10, 8), real(6, 8), real(2, 8)]
    scale = [real(8), real(8)]
    ids, segments, mask = whole(2, 4, dtype=i32, high=10), whole(2, 4, dtype=i32, high=2), ints([1, 1, 1, 0], [1, 1, 0, 0], dtype=i32)
    case("EmbedLayerNormalization", [ids, segments, *tables, *scale], outputs=2)
    case("EmbedLayerNormalization", [ids, segments, *tables, *scale, mask], outputs=2, epsilon=1e-5)
    case("EmbedLayerNormalization", [ids, None, *tables[:2], None, *scale, mask], outputs=2)
    case("EmbedLayerNormalization", [ids, segments, *tables, *scale, mask], outputs=3)
    positions = whole(2, 4, dtype=i32, high=6)
    case("EmbedLayerNormalization", [ids, segments, *tables, *scale, None, positions], outputs=2)
    case("EmbedLayerNormalization", [ids, segments, *tables, *scale, None, positions[:1]], outputs=2)


def gelus():
    for op in ("BiasGelu", "FastGelu"):
        case(op, [real(2, 3, 8, scale=3.0), real(8)], close=2e-5)
    case("FastGelu", [real(2, 3, 8, scale=3.0)], close=2e-5)
    case("FastGelu", [real(2, 9, dtype=F16), real(9, dtype=F16)])
    case("QuickGelu", [real(2, 3, 8, scale=3.0)])
    case("QuickGelu", [real(2, 3, 8, scale=3.0)], alpha=0.5)
    case("Gelu", [real(2, 3, 8, scale=3.0)], close=2e-5)


def skip_normalizations():
    for dtype in (F32, F16):
        x, skip, gamma, beta, bias = [real(*shape, dtype=dtype) for shape in [(2, 3, 8), (2, 3, 8), (8,), (8,), (8,)]]
        case("SkipLayerNormalization", [x, skip, gamma, beta, bias], epsilon=1e-5)
        case("SkipLayerNormalization", [x, skip, gamma])
        case("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], epsilon=1e-5)
        case("SkipSimplifiedLayerNormalization", [x, skip, gamma])
    case("SkipLayerNormalization", [real(2, 3, 8), real(3, 8), real(8)])
    case("SkipLayerNormalization", [real(2, 3, 8), real(1, 3, 8), real(8)])


def support_vectors():
    def spread(count, scale=1.0):
        return real(count, scale=scale).tolist()

    x = real(4, 3)
    kernels = ["LINEAR", "POLY", "RBF", "SIGMOID"]
    for kernel in kernels:
        given = {"kernel_type": kernel, "kernel_params": [0.5, 0.25, 2.0], "rho": [0.3]}
        vectors = {"n_supports": 5, "coefficients": spread(5), "support_vectors": spread(15)}
        case("SVMRegressor", [x], domain=ML, **given, **vectors)
        case("SVMRegressor", [x], domain=ML, one_class=1, **given, **vectors)
    linear = {"coefficients": spread(3), "rho": [0.3], "kernel_type": "LINEAR", "kernel_params": [0.5, 0.25, 2.0]}
    case("SVMRegressor", [x], domain=ML, **linear)
    for classes in (2, 3, 4):
        for kernel in kernels:
            counts = whole(classes, low=1, high=4).tolist()
            total, pairs = sum(counts), classes * (classes - 1) // 2
            given = {
                "classlabels_ints": [10 + label for label in range(classes)],
                "coefficients": spread((classes - 1) * total),
                "kernel_params": [0.5, 0.25, 2.0],
                "kernel_type": kernel,
                "rho": spread(pairs, 0.3),
                "support_vectors": spread(3 * total),
                "vectors_per_class": counts,
            }
            fitted = {"prob_a": [-abs(v) for v in spread(pairs)], "prob_b": spread(pairs, 0.1)}
            # ONNX Runtime couples probabilities in FLOAT.
            for post in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
                case("SVMClassifier", [x], outputs=2, domain=ML, close=1e-4, post_transform=post, **given)
                case("SVMClassifier", [x], outputs=2, domain=ML, close=1e-4, post_transform=post, **given, **fitted)


def other_learners():
    x = real(4, 3)
    for post in ("NONE", "LOGISTIC", "SOFTMAX"):
        three = {"coefficients": real(9).tolist(), "intercepts": real(3).tolist(), "post_transform": post}
        case("LinearRegressor", [x], domain=ML, targets=3, **three)
        case("LinearClassifier", [x], outputs=2, domain=ML, classlabels_ints=[4, 7, 9], **three)
    case("LinearRegressor", [x], domain=ML, coefficients=[0.5, -1.0, 2.0])
    for norm in ("MAX", "L1", "L2"):
        case("Normalizer", [x], domain=ML, norm=norm)
    case("Scaler", [x], domain=ML, offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.0])
    case("Scaler", [x], domain=ML, offset=[0.5], scale=[2.0])
    holes = x.copy()
    holes[1, 2] = -7
    case("Imputer", [holes], domain=ML, imputed_value_floats=[1.5], replaced_value_float=-7.0)
    case("Imputer", [holes], domain=ML, imputed_value_floats=[1.5, 2.5, 3.5], replaced_value_float=-7.0)
    case("OneHotEncoder", [ints(3, 1, 7, 2)], domain=ML, cats_int64s=[1, 2, 3], zeros=1)
    case("FeatureVectorizer", [x, real(4, 2)], domain=ML, inputdimensions=[3, 2])
    case("ZipMap", [whole(2, 3).astype(F32) / 8], domain=ML, classlabels_int64s=[7, 3, 5])
    case("ZipMap", [whole(3, 2).astype(F32) / 8], domain=ML, classlabels_strings=["no", "maybe"])


mat_mul_n_bits()
simplified_layer_normalization()
rotary_embedding()
gather_block_quantized()
fused_gemm()
q_linear()
attention()
embed_layer_normalization()
gelus()
skip_normalizations()
support_vectors()
other_learners()
