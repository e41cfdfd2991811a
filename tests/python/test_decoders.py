"""The in-file decoders of all formats, run by the `onnx` package's reference, against the native codecs.

What is read here is the file: declarations and payloads by a protobuf reader of this page, the nodes by `onnx`. `Field`
is computed from the declaration alone.
"""

import pathlib
import subprocess

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).parents[2]
DTYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 10: np.float16,
    11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16, 17: ml_dtypes.float8_e4m3fn,
    18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e5m2fnuz,
}
# Types narrower than a byte or without NumPy type of their own: bits, then the type that Field gives.
NARROW = {
    21: (4, np.uint8), 22: (4, np.int8), 25: (2, np.uint8), 26: (2, np.int8), 23: (4, ml_dtypes.float4_e2m1fn),
    24: (8, ml_dtypes.float8_e8m0fnu), 27: (6, ml_dtypes.float6_e2m3fn), 28: (6, ml_dtypes.float6_e3m2fn),
}


def message(data):
    """Field number -> values: ints for varints, bytes for the rest."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or (varint() if tag & 7 == 2 else None)
            value = bytes(data[at:at + size])
            at += size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def one(fields, number, default=None):
    return fields.get(number, [default])[-1]


class Leaf:
    """Where a path leads: bit offset of the first element, its width and type, and (extent, stride) per dimension."""

    def __init__(self, offset, width, dtype, dims):
        self.offset, self.width, self.dtype, self.dims = offset, width, dtype, dims


class Types:
    def __init__(self, declarations):
        parsed = [message(declaration) for declaration in declarations]
        self.by_id = {one(fields, 10): fields for fields in parsed}

    def resolve(self, fields):
        return self.by_id[one(fields, 4)] if 4 in fields else fields

    def value_bits(self, value_type):
        fields = message(value_type)
        if 1000 in fields:
            return self.struct_bits(message(one(fields, 1000)))
        width, shape, _ = self.tensor(fields)
        return width * int(np.prod(shape, dtype=object))

    def tensor(self, fields):
        tensor = message(one(fields, 1))
        dtype = one(tensor, 1)
        shape = [one(message(dim), 1, 0) for dim in message(one(tensor, 2, b"")).get(1, [])]
        width = NARROW[dtype][0] if dtype in NARROW else np.dtype(DTYPES[dtype]).itemsize * 8
        return width, shape, dtype

    def struct_bits(self, fields):
        fields = self.resolve(fields)
        if 1 in fields:
            array = message(one(fields, 1))
            return one(array, 2) * self.value_bits(one(array, 1))
        if 2 in fields:
            members = [message(field) for field in message(one(fields, 2)).get(1, [])]
            return sum(self.value_bits(one(member, 2)) for member in members if 2 in member)
        packing = message(one(fields, 3))
        return one(packing, 2) * sum(one(message(c), 2) for c in packing[1])

    def find(self, fields, path, offset=0, dims=()):
        """A Leaf, or the TensorProto bytes of a constant."""
        fields = self.resolve(fields)
        if 1 in fields:
            array = message(one(fields, 1))
            stride = self.value_bits(one(array, 1))
            return self.find_value(one(array, 1), path, offset, (*dims, (one(array, 2), stride)))
        if 2 in fields:
            for member in map(message, message(one(fields, 2)).get(1, [])):
                if one(member, 1).decode() == path[0]:
                    if 4 in member:
                        return one(member, 4)
                    return self.find_value(one(member, 2), path[1:], offset, dims)
                if 2 in member:
                    offset += self.value_bits(one(member, 2))
            raise KeyError(path[0])
        packing = message(one(fields, 3))
        components = [message(c) for c in packing[1]]
        dims = (*dims, (one(packing, 2), sum(one(c, 2) for c in components)))
        for component in components:
            if one(component, 1).decode() == path[0]:
                return Leaf(offset, one(component, 2), None, dims)
            offset += one(component, 2)
        raise KeyError(path[0])

    def find_value(self, value_type, path, offset, dims):
        fields = message(value_type)
        if 1000 in fields:
            return self.find(message(one(fields, 1000)), path, offset, dims)
        assert not path, "the path leads into a tensor"
        width, shape, dtype = self.tensor(fields)
        strides = [width * int(np.prod(shape[i + 1:], dtype=object)) for i in range(len(shape))]
        return Leaf(offset, width, dtype, (*dims, *zip(shape, strides)))


def field(types, declaration, path, payload, record_bits):
    """Decision: [records, *enclosing dimensions, *shape]; a constant is [1, *shape]."""
    found = types.find(declaration, path)
    if isinstance(found, bytes):
        return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(found))[None]
    bits = np.unpackbits(np.frombuffer(payload, np.uint8), bitorder="little")
    starts = np.arange(len(bits) // record_bits, dtype=np.int64) * record_bits + found.offset
    for extent, stride in found.dims:
        starts = starts[..., None] + np.arange(extent, dtype=np.int64) * stride
    codes = np.zeros(starts.shape, dtype=np.uint64)
    for bit in range(found.width):
        codes |= bits[starts + bit].astype(np.uint64) << np.uint64(bit)
    if found.dtype is None:
        container = next(w for w in (8, 16, 32, 64) if found.width <= w)
        return codes.astype(f"uint{container}")
    if found.dtype in NARROW:
        width, dtype = NARROW[found.dtype]
        narrow = codes.astype(np.uint8)
        if dtype == np.int8:
            narrow = (narrow << np.uint8(8 - width)).view(np.int8) >> np.int8(8 - width)
        return narrow.view(dtype)
    return codes.astype(f"uint{found.width}").view(DTYPES[found.dtype])


def run(types, declaration, payload):
    function = onnx.FunctionProto.FromString(one(declaration, 5))
    record_bits = types.struct_bits(declaration)
    feeds, nodes = {}, []
    for node in function.node:
        if node.domain == "ai.heirloom":
            assert node.op_type == "Field" and list(node.input) == list(function.input)
            path = [name.decode() for name in node.attribute[0].strings]
            feeds[node.output[0]] = field(types, declaration, path, payload, record_bits)
        else:
            nodes.append(node)
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    output = onnx.helper.make_tensor_value_info(function.output[0], onnx.TensorProto.FLOAT, [None, None])
    graph = onnx.helper.make_graph(nodes, "decoder", inputs, [output])
    imports = [i for i in function.opset_import if i.domain != "ai.heirloom"]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    onnx.checker.check_model(model, full_check=True)
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("decoders") / "decoders.onnx"
    subprocess.run(
        ["cargo", "run", "-q", "-p", "heirloom-formats", "--example", "write_decoders", "--", str(path)],
        cwd=ROOT, check=True,
    )
    return path.read_bytes()


# proves: D3, D4, E7
def test_every_in_file_decoder_equals_the_native_codec_to_the_bit(model):
    fields = message(model)
    types = Types(fields[1000])
    graph = message(one(fields, 7))
    decoded = {}
    for data in graph[5]:
        tensor = onnx.TensorProto.FromString(data)
        decoded[tensor.name.removesuffix(".decoded")] = onnx.numpy_helper.to_array(tensor)
    assert len(graph[1000]) == len(decoded) >= 65
    for data in graph[1000]:
        value = message(data)
        name = one(value, 7).decode()
        declaration = types.resolve(message(one(value, 2)))
        result = run(types, declaration, one(value, 4, b""))
        expected = decoded[name]
        assert result.dtype == np.float32 and result.shape == expected.shape, name
        same = (result.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(result) & np.isnan(expected))
        where = np.argwhere(~same)
        assert not len(where), f"{name} at {where[0]}: {result[tuple(where[0])]} for {expected[tuple(where[0])]}"
