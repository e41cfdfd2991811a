"""Our files and Python's `onnx` package: it loads them, and what it saves is still ours."""

from __future__ import annotations

import onnx
from google.protobuf import unknown_fields

import heirloom_cli

# Field numbers of our extensions.
STRUCT_TYPES = 1000
ENCODED_INITIALIZER = 1000
PERSISTENT_BINDINGS = 1001


def unknown_numbers(message) -> list[int]:
    return [field.field_number for field in unknown_fields.UnknownFieldSet(message)]


# proves: W2
def test_the_onnx_package_keeps_our_fields(model, tmp_path):
    loaded = onnx.load(str(model.onnx), load_external_data=False)
    assert STRUCT_TYPES in unknown_numbers(loaded)
    fields = unknown_numbers(loaded.graph)
    assert fields.count(PERSISTENT_BINDINGS) == sum("past_key_values" in each.name for each in loaded.graph.input)
    assert ENCODED_INITIALIZER in fields

    # Saved by the package beside the same weights, the model is the one that it was.
    saved = model.onnx.parent / f"{model.onnx.stem}.saved-by-onnx.onnx"
    try:
        onnx.save(loaded, str(saved))
        heirloom_cli.run("verify", saved)
        ours, theirs = (heirloom_cli.run("inspect", path, "--json") for path in (model.onnx, saved))
        assert ours.replace(str(model.onnx), "") == theirs.replace(str(saved), "")
        arguments = ["--tokens", "504,3575,282", "--max-tokens", 4, "--temperature", 0]
        ids = [heirloom_cli.generate_report(path, *arguments)["token_ids"] for path in (model.onnx, saved)]
        assert ids[0] == ids[1]
    finally:
        saved.unlink(missing_ok=True)


# proves: W2
def test_nodes_and_inputs_are_plain_onnx(model):
    loaded = onnx.load(str(model.onnx), load_external_data=False)
    assert {each.domain: each.version for each in loaded.opset_import}[""] == 24
    assert {node.domain for node in loaded.graph.node} <= {"", "ai.onnx"}
    for node in loaded.graph.node:
        assert onnx.defs.has(node.op_type), node.op_type
    assert [each.name for each in loaded.graph.input][:2] == ["input_ids", "logits_to_keep"]
