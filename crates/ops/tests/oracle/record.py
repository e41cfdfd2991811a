#!/usr/bin/env python3
"""Records what onnx.reference computes for small cases of each operator.

usage: record.py > cases.jsonl        needs: onnx numpy ml_dtypes (recorded with onnx 1.23.2)

A line is a case: operator, version, attributes, inputs (null where one is left out) and outputs; a tensor is
[ONNX type number, shape, little-endian bytes in hexadecimal, packed as raw_data is].
"""

import json
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(7)
F16, F32, F64, BF16 = np.float16, np.float32, np.float64, ml_dtypes.bfloat16
REALS = [F32, F16, BF16, F64]


def real(*shape, dtype=F32, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def whole(*shape, dtype=np.int64, low=-9, high=9):
    return rng.integers(low, high, shape).astype(dtype)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype=dtype)


def truth(*shape):
    return rng.random(shape) < 0.5


def show(array):
    tensor = numpy_helper.from_array(np.ascontiguousarray(array))
    return [tensor.data_type, list(array.shape), tensor.raw_data.hex()]


def case(op, version, inputs, outputs=1, tolerance=None, **attributes):
    names = ["" if value is None else f"i{at}" for at, value in enumerate(inputs)]
    results = [f"o{at}" for at in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph_inputs = [
        helper.make_tensor_value_info(name, numpy_helper.from_array(np.asarray(value)).data_type, value.shape)
        for name, value in zip(names, inputs)
        if name
    ]
    graph_outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in results]
    graph = helper.make_graph([node], "case", graph_inputs, graph_outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    feeds = {name: value for name, value in zip(names, inputs) if name}
    with np.errstate(all="ignore"):
        computed = ReferenceEvaluator(model).run(None, feeds)
    line = {
        "op": op,
        "version": version,
        "attributes": {
            name: {"tensor": show(numpy_helper.to_array(value))} if isinstance(value, TensorProto) else value
            for name, value in attributes.items()
        },
        "inputs": [None if value is None else show(value) for value in inputs],
        "outputs": [show(np.asarray(value)) for value in computed],
    }
    if tolerance is not None:
        line["tolerance"] = tolerance
    print(json.dumps(line))


def arithmetic():
    for op in ["Add", "Sub", "Mul", "Div"]:
        for a, b in [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((2, 0), (1, 1)), ((4, 1, 3), (2, 1))]:
            case(op, 14, [real(*a), real(*b) + F32(3)])
        for dtype in REALS[1:]:
            case(op, 14, [real(3, 4, dtype=dtype), real(4, dtype=dtype) + dtype(2)])
        for dtype in [np.int64, np.int32, np.int16, np.int8]:
            case(op, 14, [whole(5, dtype=dtype), whole(5, dtype=dtype, low=1)])
        for dtype in [np.uint64, np.uint32, np.uint16, np.uint8]:
            case(op, 14, [whole(5, dtype=dtype, low=5, high=20), whole(5, dtype=dtype, low=1, high=5)])
    case("Add", 14, [ints(127, -128, dtype=np.int8), ints(1, -1, dtype=np.int8)])
    case("Div", 14, [ints(-7, 7, -7, 7, dtype=np.int32), ints(2, -2, -2, 2, dtype=np.int32)])
    case("Pow", 15, [np.abs(real(2, 3)) + F32(0.1), real(3)])
    case("Pow", 15, [real(4), ints(0, 1, 2, 3)])
    case("Pow", 15, [whole(5), ints(2, 2, 3, 0, 1)])
    case("Pow", 15, [real(4, dtype=F16), np.array(2.0, F32)])
    case("Pow", 15, [whole(4, dtype=np.int32, low=1), np.array([2.0, 1.5, 0.5, 1.0], F32)])
    case("Mod", 13, [ints(-7, 7, -7, 7, 6), ints(3, 3, -3, -3, 2)])
    case("Mod", 13, [ints(-7, 7, -7, 7, dtype=np.int8), ints(3, 3, -3, -3, dtype=np.int8)], fmod=1)
    case("Mod", 13, [real(2, 3, scale=5), real(3) + F32(2)], fmod=1)
    case("IsNaN", 20, [np.array([1, np.nan, np.inf, -np.nan], F32)])
    case("IsNaN", 20, [np.array([1, np.nan], F16)])
    case("Equal", 19, [whole(3, 4, low=0, high=3), whole(4, low=0, high=3)])
    case("Equal", 19, [np.array([1, np.nan, 0, -0.0], F32), np.array([1, np.nan, -0.0, 1], F32)])
    case("Equal", 19, [truth(6), truth(6)])
    case("Where", 16, [truth(2, 1, 3), real(3), real(2, 4, 1)])
    case("Where", 16, [truth(4), whole(4), whole(1)])
    case("Where", 16, [truth(2, 2), truth(2, 2), truth(2)])
    case("Where", 16, [truth(3), real(3, dtype=F16), real(3, dtype=F16)])


def elementwise():
    for op, version in [("Neg", 13), ("Sqrt", 13), ("Sin", 22), ("Cos", 22), ("Sigmoid", 13)]:
        for dtype in REALS:
            values = real(3, 5, dtype=dtype, scale=3)
            case(op, version, [np.abs(values) if op == "Sqrt" else values])
    case("Neg", 13, [ints(-128, 127, 0, dtype=np.int8)])
    case("Sigmoid", 13, [np.array([-100, 100, 0, -1e4, 1e4], F32)])
    for dtype in REALS:
        case("Swish", 24, [real(2, 6, dtype=dtype, scale=2)])
    case("Swish", 24, [real(6, scale=2)], alpha=0.5)
    case("Identity", 25, [real(2, 3)])


def casts():
    numbers = np.array([-3.7, -1.5, 0.0, 0.5, 1.0, 2.5, 100.25], F64)
    types = [F32, F16, BF16, F64, np.int64, np.int32, np.int16, np.int8]
    for source in types:
        for target in types + [np.bool_]:
            data_type = helper.np_dtype_to_tensor_dtype(np.dtype(target))
            case("Cast", 25, [numbers.astype(source)], to=data_type)
    for target in [np.uint64, np.uint32, np.uint16, np.uint8]:
        data_type = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        case("Cast", 25, [np.abs(numbers).astype(F32)], to=data_type)
        case("Cast", 25, [np.abs(numbers).astype(target)], to=TensorProto.FLOAT)
    case("Cast", 25, [truth(7)], to=TensorProto.FLOAT)
    case("Cast", 25, [truth(7)], to=TensorProto.INT64)
    case("Cast", 25, [np.array([0.0, -0.0, np.nan, 1e-9], F32)], to=TensorProto.BOOL)
    case("Cast", 25, [np.array([300, -300, 2**40 + 5, -1], np.int64)], to=TensorProto.INT8)
    case("Cast", 25, [np.array([2**63, 2**64 - 1], np.uint64)], to=TensorProto.DOUBLE)
    case("Cast", 25, [np.array([65504, 65519, 65520, 1e-8, 6e-8, np.inf], F32)], to=TensorProto.FLOAT16)


def shapes():
    case("Shape", 25, [real(2, 3, 4)])
    case("Shape", 25, [real(2, 3, 4)], start=1)
    case("Shape", 25, [real(2, 3, 4)], start=-2, end=-1)
    case("Shape", 25, [real(2, 3, 4)], start=5, end=9)
    case("Shape", 25, [np.array(1.0, F32)])
    for wanted in [(6,), (3, 2), (-1, 2), (0, -1), (1, 2, 3)]:
        case("Reshape", 25, [real(2, 3), ints(*wanted)])
    case("Reshape", 25, [real(0, 4), ints(4, 0)], allowzero=1)
    case("Squeeze", 25, [real(1, 3, 1)])
    case("Squeeze", 25, [real(1, 3, 1), ints(0)])
    case("Squeeze", 25, [real(1, 3, 1), ints(-1, 0)])
    case("Unsqueeze", 25, [real(3, 4), ints(0)])
    case("Unsqueeze", 25, [real(3, 4), ints(-1, 1)])
    for dtype in [F32, F16, np.int64, np.int8, np.bool_]:
        case("Transpose", 25, [real(2, 3, 4).astype(dtype)])
    case("Transpose", 25, [real(2, 3, 4, 5)], perm=[0, 2, 1, 3])
    case("Transpose", 25, [real(2, 3, 4)], perm=[0, 1, 2])
    case("Transpose", 25, [real(2, 0, 4)], perm=[2, 0, 1])
    case("Expand", 13, [real(3, 1), ints(2, 1, 4)])
    case("Expand", 13, [real(1), ints(2, 0)])
    case("Expand", 13, [real(2, 3), ints(1)])
    case("Slice", 13, [real(4, 5), ints(1), ints(3)])
    case("Slice", 13, [real(4, 5), ints(1, 0), ints(3, 100), ints(1, 0)])
    case("Slice", 13, [real(4, 5), ints(-1), ints(-100), ints(1), ints(-2)])
    case("Slice", 13, [real(4, 5), ints(0, 4), ints(4, 0), ints(0, 1), ints(3, -1)])
    case("Slice", 13, [real(4, 5), ints(3), ints(1), ints(0)])
    case("Slice", 13, [real(4, 5), ints(2, dtype=np.int32), ints(2**31 - 1, dtype=np.int32), ints(-2, dtype=np.int32)])
    case("Split", 18, [real(6, 2)], outputs=3, num_outputs=3)
    case("Split", 18, [real(2, 7)], outputs=3, num_outputs=3, axis=1)
    case("Split", 18, [real(2, 7), ints(2, 0, 5)], outputs=3, axis=-1)
    case("Concat", 13, [real(2, 3), real(2, 1), real(2, 0)], axis=1)
    case("Concat", 13, [real(1, 2, 2), real(3, 2, 2)], axis=-3)
    case("Concat", 13, [whole(2, 2, dtype=np.int8), whole(2, 3, dtype=np.int8)], axis=1)
    case("Gather", 13, [real(4, 3), ints(0, -1, 2)])
    case("Gather", 13, [real(4, 3, 2), np.array([[2, 0], [1, -3]])], axis=1)
    case("Gather", 13, [real(4), np.array(3)])
    case("Gather", 13, [real(4, 0), ints(1, 2)])
    case("Gather", 13, [truth(4, 3), ints(1, 1, dtype=np.int32)])
    case("GatherND", 13, [real(2, 3, 4), np.array([[0, 1], [-1, 2]])])
    case("GatherND", 13, [real(2, 3, 4), np.array([[1], [0]])], batch_dims=1)
    case("GatherND", 13, [real(2, 3), np.array([[[0, 1]], [[1, 2]]])])
    case("Range", 11, [np.array(2), np.array(11), np.array(3)])
    case("Range", 11, [np.array(5, np.int32), np.array(-4, np.int32), np.array(-2, np.int32)])
    case("Range", 11, [np.array(1.0, F32), np.array(2.0, F32), np.array(0.3, F32)])
    case("Range", 11, [np.array(3), np.array(3), np.array(1)])
    case("ConstantOfShape", 25, [ints(2, 3)])
    case("ConstantOfShape", 25, [ints(0)], value=numpy_helper.from_array(np.array([7], np.int64)))
    case("ConstantOfShape", 25, [ints(3)], value=numpy_helper.from_array(np.array([True])))
    case("ConstantOfShape", 25, [ints(5)], value=numpy_helper.from_array(np.array([-2], ml_dtypes.int4)))


def reductions():
    for dtype in REALS:
        case("Softmax", 13, [real(2, 5, dtype=dtype, scale=3)])
        case("ReduceMean", 18, [real(3, 4, dtype=dtype), ints(1)])
    case("Softmax", 13, [real(2, 3, 4)], axis=1)
    case("Softmax", 13, [np.array([[1000, 1001, -1000]], F32)])
    case("ReduceMean", 18, [real(3, 4, 2)])
    case("ReduceMean", 18, [real(3, 4, 2), ints(0, 2)], keepdims=0)
    case("ReduceMean", 18, [real(3, 4, 2), ints(-2)])
    case("ReduceMean", 18, [real(3, 4)], noop_with_empty_axes=1)
    case("ReduceMean", 13, [real(3, 4, 2)], axes=[1])
    for dtype in REALS:
        case("RMSNormalization", 23, [real(2, 3, 8, dtype=dtype), real(8, dtype=dtype)])
    case("RMSNormalization", 23, [real(2, 3, 4), real(3, 4)], axis=1, epsilon=0.1)
    case("RMSNormalization", 23, [real(2, 3, 4), real(4)], axis=-2)


def products():
    for a, b in [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)),
                 ((5, 1, 2, 3), (2, 3, 4)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((3, 40), (40, 2))]:
        case("MatMul", 13, [real(*a), real(*b)])
    for dtype in REALS[1:]:
        case("MatMul", 13, [real(2, 6, dtype=dtype), real(6, 3, dtype=dtype)])
    for dtype in [np.int64, np.int32]:
        case("MatMul", 13, [whole(2, 3, dtype=dtype), whole(3, 4, dtype=dtype)])
    for trans_a in [0, 1]:
        for trans_b in [0, 1]:
            a, b = real(4, 5), real(5, 3)
            case("Gemm", 13, [a.T if trans_a else a, b.T if trans_b else b], transA=trans_a, transB=trans_b)
    for c in [(3,), (4, 1), (1, 3), (4, 3), (), (1,)]:
        case("Gemm", 13, [real(4, 5), real(5, 3), real(*c)], alpha=0.5, beta=2.0)
    for dtype in REALS[1:]:
        case("Gemm", 13, [real(2, 4, dtype=dtype), real(3, 4, dtype=dtype), real(3, dtype=dtype)], transB=1)
    case("Gemm", 13, [whole(2, 3, dtype=np.int32), whole(3, 2, dtype=np.int32)])


def rotary():
    def angles(*shape):
        angle = real(*shape)
        return np.cos(angle).astype(F32), np.sin(angle).astype(F32)

    for interleaved in [0, 1]:
        cos, sin = angles(2, 3, 4)
        case("RotaryEmbedding", 23, [real(2, 3, 16), cos, sin], num_heads=2, interleaved=interleaved)
        case("RotaryEmbedding", 23, [real(2, 2, 3, 8), cos, sin], interleaved=interleaved)
        cos, sin = angles(10, 4)
        places = np.array([[0, 1, 9], [4, 3, 2]])
        case("RotaryEmbedding", 23, [real(2, 3, 16), cos, sin, places], num_heads=2, interleaved=interleaved)
        cos, sin = angles(2, 3, 2)
        case("RotaryEmbedding", 23, [real(2, 2, 3, 8), cos, sin], rotary_embedding_dim=4, interleaved=interleaved)
    cos, sin = angles(1, 3, 4)
    for dtype in [F16, BF16]:
        case("RotaryEmbedding", 23, [real(1, 3, 16, dtype=dtype), cos.astype(dtype), sin.astype(dtype)], num_heads=2)


def attention():
    def qkv(dtype=F32, batch=2, q=3, kv=3, q_heads=4, kv_heads=2, size=8, out=8):
        return [real(batch, q, q_heads * size, dtype=dtype), real(batch, kv, kv_heads * size, dtype=dtype),
                real(batch, kv, kv_heads * out, dtype=dtype)]

    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    case("Attention", 24, qkv(), **heads)
    case("Attention", 24, qkv(), is_causal=1, **heads)
    case("Attention", 24, qkv(kv=5, out=6), **heads)
    case("Attention", 24, qkv(), scale=0.3, softcap=0.7, **heads)
    for dtype in [F16, BF16, F64]:
        case("Attention", 24, qkv(dtype), is_causal=1, **heads)
    case("Attention", 24, [real(1, 4, 3, 8), real(1, 4, 5, 8), real(1, 4, 5, 8)])
    case("Attention", 24, [real(1, 4, 3, 8), real(1, 1, 5, 8), real(1, 1, 5, 8)])
    for dtype in REALS:
        past = [real(2, 2, 4, 8, dtype=dtype), real(2, 2, 4, 8, dtype=dtype)]
        case("Attention", 24, qkv(dtype, q=2, kv=2) + [None] + past, outputs=3, is_causal=1, **heads)
    past = [real(2, 2, 0, 8), real(2, 2, 0, 8)]
    case("Attention", 24, qkv() + [None] + past, outputs=3, is_causal=1, **heads)
    mask = truth(3, 3)
    mask[:, 0] = True
    case("Attention", 24, qkv() + [mask], **heads)
    case("Attention", 24, qkv() + [real(2, 1, 3, 3)], **heads)
    case("Attention", 24, qkv() + [real(1, 4, 3, 3)], is_causal=1, **heads)
    blind = np.ones((3, 3), bool)
    blind[1] = False
    case("Attention", 24, qkv() + [blind], **heads)
    # The reference caps the raw scores of mode 0, against the operator's text.
    for mode, softcap in enumerate([0.0, 2.0, 2.0, 2.0]):
        case("Attention", 24, qkv() + [mask], outputs=4, qk_matmul_output_mode=mode, softcap=softcap, **heads)
    case("Attention", 24, qkv(kv=6) + [None, None, None, ints(4, 6)], is_causal=1, **heads)
    case("Attention", 25, qkv(q=6, kv=6), is_causal=1, left_window_size=2, **heads)
    case("Attention", 25, qkv(q=6, kv=6), left_window_size=1, right_window_size=2, **heads)


for group in [arithmetic, elementwise, casts, shapes, reductions, products, rotary, attention]:
    group()
print(f"onnx {onnx.__version__}", file=sys.stderr)
