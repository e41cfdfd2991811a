#!/usr/bin/env python3
"""Records what ONNX Runtime computes for com.microsoft's GroupQueryAttention.

usage: group_query_attention.py > group_query_attention.jsonl        needs: onnx numpy onnxruntime (recorded with 1.31.1)

A line is a case as in record.py, and the rows of each batch entry that count: those of its prompt, or all, and those of
its cache.
"""

import json

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(11)


def show(array):
    tensor = numpy_helper.from_array(np.ascontiguousarray(array))
    return [tensor.data_type, list(array.shape), tensor.raw_data.hex()]


def case(lengths, tokens, past, *, heads=4, kv_heads=2, size=16, dtype=np.float32, packed=False, rotary=0, partial=None, ids=None, **attributes):
    """`lengths`: rows of each entry after the call; `past`: rows of the past's tensor."""
    batch, total = len(lengths), max(lengths)

    def real(*shape):
        return rng.standard_normal(shape).astype(dtype)

    if packed:
        inputs = [real(batch, tokens, (heads + 2 * kv_heads) * size), None, None]
    else:
        inputs = [real(batch, tokens, n * size) for n in (heads, kv_heads, kv_heads)]
    inputs += [real(batch, kv_heads, past, size), real(batch, kv_heads, past, size)]
    inputs += [np.array(lengths, np.int32) - 1, np.array(total, np.int32).reshape(1)]
    if rotary:
        attributes["do_rotary"] = 1
        angles = np.outer(np.arange(64), 1 / 100 ** (np.arange(size // 2 if partial is None else partial) / size))
        inputs += [np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)]
    if ids is not None:
        inputs += [np.array(ids, np.int64)]
    attributes |= {"num_heads": heads, "kv_num_heads": kv_heads}
    names = ["" if value is None else f"i{at}" for at, value in enumerate(inputs)]
    node = helper.make_node(
        "GroupQueryAttention", names, ["out", "key", "value"], domain="com.microsoft", **attributes
    )
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [node],
        "case",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(names, inputs)
            if name
        ],
        [helper.make_tensor_value_info(name, kind, None) for name in ("out", "key", "value")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    computed = session.run(None, {name: value for name, value in zip(names, inputs) if name})
    prompt = total == tokens
    line = {
        "attributes": attributes,
        "inputs": [None if value is None else show(value) for value in inputs],
        "outputs": [show(value) for value in computed],
        "rows": [[length if prompt else tokens, length] for length in lengths],
    }
    print(json.dumps(line))


F16 = np.float16
for dtype in (np.float32, F16):
    case([5], 5, 0, dtype=dtype)
    case([6], 1, 5, dtype=dtype)
    case([9], 3, 6, dtype=dtype)
    case([5], 5, 16, dtype=dtype)
    case([6], 1, 16, dtype=dtype)
    case([16], 1, 16, dtype=dtype)
    case([7], 1, 16, rotary=1, dtype=dtype)
    case([4, 4], 4, 0, rotary=1, rotary_interleaved=1, dtype=dtype)
case([6, 6], 1, 5, packed=True, rotary=1)
case([3, 5], 5, 0)
case([3, 5], 5, 16, rotary=1)
case([4, 6], 1, 5, rotary=1)
case([4, 6], 1, 16, rotary=1)
case([12], 12, 0, local_window_size=4)
case([12], 1, 16, local_window_size=4, rotary=1)
case([12], 1, 11, local_window_size=1)
case([8], 1, 16, softcap=2.0, scale=0.9)
case([8], 8, 0, heads=6, kv_heads=1, size=8, scale=0.0)
case([8], 2, 6, heads=3, kv_heads=3, rotary=1)
case([6], 1, 16, rotary=1, size=32, partial=8)
