"""Prints every message field and enum value that the `onnx` package's descriptors declare, one a line.

    python crates/proto/tests/python/fields.py > crates/proto/tests/it/onnx_fields.txt
"""

from google.protobuf import descriptor_pb2
from onnx import onnx_data_pb2, onnx_ml_pb2, onnx_operators_ml_pb2

FIELD = descriptor_pb2.FieldDescriptorProto


def enums(prefix, container):
    for enum in container.enum_type:
        for value in enum.value:
            yield f"{prefix}{enum.name} = {value.name} {value.number}"


def message(prefix, it):
    name = prefix + it.name
    for field in sorted(it.field, key=lambda field: field.number):
        kind = field.type_name.removeprefix(".onnx.") or FIELD.Type.Name(field.type).removeprefix("TYPE_").lower()
        words = [f"{name}.{field.name}", str(field.number), kind]
        if field.label == FIELD.LABEL_REPEATED:
            words.append("packed" if field.options.packed else "repeated")
        if field.HasField("oneof_index"):
            words.append(f"oneof {it.oneof_decl[field.oneof_index].name}")
        yield " ".join(words)
    yield from enums(name + ".", it)
    for nested in it.nested_type:
        yield from message(name + ".", nested)


lines = []
for module in (onnx_ml_pb2, onnx_operators_ml_pb2, onnx_data_pb2):
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    lines.extend(enums("", file))
    for top in file.message_type:
        lines.extend(message("", top))
print("\n".join(sorted(lines)))
