"""Answers for Google's protobuf: what does it make of these bytes?

The schema is that of the `onnx` package, with the contract's messages and fields added below.

Reads cases from standard input, each two chunks (a 4-byte little-endian length and bytes): the bytes of a model, and
what heirloom-proto made of them, or nothing if it refused them. Answers each with one line:

    same       both took the bytes and mean the same
    refused    both refused them
    WORDS      what differs
"""

import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.message import DecodeError
from onnx import onnx_ml_pb2

# Message: fields as `number name type`, `*` in front of a repeated one, `| oneof` behind a member.
CONTRACT = {
    "AffineLayoutProto": """1 storage_type TensorProto.DataType; 2 scale TensorProto; 3 zero_point TensorProto;
        4 axis int64; 5 block_size uint64""",
    "EncodedValueProto": """1 affine AffineLayoutProto | layout; 2 struct_type StructTypeProto | layout;
        3 logical_type TypeProto; 4 raw_data bytes; *5 external_data StringStringEntryProto;
        6 data_location TensorProto.DataLocation; 7 name string; 8 doc_string string""",
    "StructTypeProto": """1 array StructTypeProto.Array | kind; 2 structure StructTypeProto.Structure | kind;
        3 bit_packing StructTypeProto.BitPacking | kind; 4 type_ref uint64 | kind; 5 decoder FunctionProto;
        6 encoder FunctionProto; 7 name string; 8 doc_string string; *9 metadata_props StringStringEntryProto;
        10 type_id uint64""",
    "StructTypeProto.Structure": "*1 field StructTypeProto.Structure.Field",
    "StructTypeProto.Structure.Field": """1 name string; 2 type TypeProto | content; 3 doc_string string;
        4 constant TensorProto | content""",
    "StructTypeProto.BitPacking": "*1 component StructTypeProto.BitPacking.Component; 2 dimension uint64",
    "StructTypeProto.BitPacking.Component": "1 name string; 2 bit_width uint32",
    "StructTypeProto.Array": "1 element_type TypeProto; 2 dimension uint64",
    "PersistentBindingProto": "1 input_name string; 2 output_name string",
    "TypeProto": "1000 struct_type StructTypeProto | value",
    "GraphProto": "*1000 encoded_initializer EncodedValueProto; *1001 persistent_bindings PersistentBindingProto",
    "ModelProto": "*1000 struct_types StructTypeProto",
}
FIELD = descriptor_pb2.FieldDescriptorProto


def model_class():
    file = descriptor_pb2.FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(file)
    for name, fields in CONTRACT.items():
        holder = file.message_type
        for part in name.split("."):
            it = next((m for m in holder if m.name == part), None) or holder.add(name=part)
            holder = it.nested_type
        for text in fields.split(";"):
            text, _, oneof = (part.strip() for part in text.partition("|"))
            number, field_name, kind = text.lstrip("*").split()
            field = it.field.add(name=field_name, number=int(number), label=FIELD.LABEL_OPTIONAL)
            if text.startswith("*"):
                field.label = FIELD.LABEL_REPEATED
            if kind[0].islower():
                field.type = FIELD.Type.Value(f"TYPE_{kind.upper()}")
            else:
                field.type_name = f".onnx.{kind}"
            if oneof:
                names = [decl.name for decl in it.oneof_decl]
                if oneof not in names:
                    it.oneof_decl.add(name=oneof)
                    names.append(oneof)
                field.oneof_index = names.index(oneof)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("onnx.ModelProto"))


Model = model_class()


def chunk():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        return None
    return sys.stdin.buffer.read(struct.unpack("<I", head)[0])


def unknown(message, path=""):
    """All unknown fields at every level, sorted: their order among known ones is free."""
    found = [
        (path, field.field_number, field.wire_type, repr(field.data) if field.wire_type != 3 else group(field.data))
        for field in unknown_fields.UnknownFieldSet(message)
    ]
    for field, value in message.ListFields():
        if field.message_type:
            inner = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            for index, one in enumerate(inner):
                found += unknown(one, f"{path}.{field.name}[{index}]")
    return sorted(found)


def group(fields):
    return repr([(f.field_number, f.wire_type, f.data if f.wire_type != 3 else group(f.data)) for f in fields])


def known(message):
    copy = Model()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return copy.SerializeToString(deterministic=True)


def parse(data):
    try:
        return Model.FromString(data)
    except DecodeError:
        return None


def verdict(original, ours):
    theirs = parse(original)
    if theirs is None:
        return "refused" if not ours else "onnx refuses, heirloom-proto does not"
    if not ours and original:
        return "heirloom-proto refuses, onnx does not"
    back = parse(ours)
    if back is None:
        return "onnx refuses what heirloom-proto wrote"
    if back.SerializeToString() == theirs.SerializeToString():
        return "same"
    if known(back) != known(theirs):
        return "known fields differ"
    if unknown(back) != unknown(theirs):
        return "unknown fields differ"
    return "same"


while (original := chunk()) is not None:
    print(verdict(original, chunk()), flush=True)
