"""Models: opened, built, looked at, changed, saved."""

from __future__ import annotations

import doctest
import inspect
import os
import pydoc

import heirloom
import ml_dtypes
import numpy as np
import pytest
from conftest import acc, address


def test_a_model_goes_through_a_file_and_through_bytes(tmp_path):
    model = acc()
    model.save(tmp_path / "acc.onnx")
    loaded = heirloom.load(tmp_path / "acc.onnx")
    assert loaded.bindings == {"s": "s_next"} and loaded.verify() == []
    assert loaded.to_bytes() == model.to_bytes() == (tmp_path / "acc.onnx").read_bytes()
    again = heirloom.load(loaded.to_bytes())
    np.testing.assert_array_equal(heirloom.Session(again).make_state({"s": [1.0]}).run({"x": [2.0]})["y"], [3])
    with pytest.raises(heirloom.ModelError):
        heirloom.load(b"no model at all")
    with pytest.raises(heirloom.ModelError):
        heirloom.load(tmp_path / "missing.onnx")


# proves: Z2
def test_u42_a_model_given_as_bytes_never_looks_into_the_current_folder(tmp_path, monkeypatch):
    g = heirloom.GraphBuilder("external")
    x = g.input("x", np.float32, ["n", 64])
    w = g.initializer("w", np.arange(64 * 64, dtype=np.float32).reshape(64, 64))
    g.output(g.op.MatMul(x, w, outputs=["y"]), np.float32, ["n", 64])
    folder = tmp_path / "real"
    folder.mkdir()
    g.build().save(folder / "m.onnx", external="file")
    data = (folder / "m.onnx").read_bytes()
    decoy = tmp_path / "decoy"
    decoy.mkdir()
    (decoy / "m.onnx.data").write_bytes(b"\0" * 64 * 64 * 4)
    monkeypatch.chdir(decoy)
    model = heirloom.load(data)
    report = model.inspect()
    assert any(c.get("location") == "m.onnx.data" for c in report["constants"])
    with pytest.raises(heirloom.ModelError) as refused:
        model.initializer("w")
    assert refused.value.kind == "unavailable" and "base" in str(refused.value)
    with pytest.raises(heirloom.SessionError):
        heirloom.Session(model)
    placed = heirloom.load(data, base_dir=folder)
    assert placed.initializer("w").tensor.place == "mapped"
    y = heirloom.Session(placed).run({"x": np.eye(64, dtype=np.float32)})["y"]
    np.testing.assert_array_equal(y, placed.initializer("w"))


def test_the_bytes_of_a_model_are_kept_where_they_are():
    data = bytearray(acc().to_bytes())
    model = heirloom.load(data)
    with pytest.raises(BufferError):
        data.append(0)
    del model
    data.append(0)


def test_an_initializer_is_the_array_that_was_given():
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n", 2])
    g.output(x @ g.initializer("w", w), np.float32, ["n", 3])
    model = g.build()
    assert address(model.initializer("w")) == address(w)
    assert not model.initializer("w").flags.writeable
    with pytest.raises(KeyError):
        model.initializer("nothing")


def test_arithmetic_of_values_adds_nodes_of_the_right_type():
    for dtype in [np.float32, np.float64, np.int64]:
        g = heirloom.GraphBuilder()
        x = g.input("x", dtype, ["n"])
        g.output(-(2 * x + 1 - x) * 3, dtype, ["n"])
        (y,) = heirloom.Session(g.build()).run({"x": np.array([1, 2], dtype)}).values()
        assert y.dtype == dtype and y.tolist() == [-6, -9]


def test_control_flow_bodies_see_the_values_around_them():
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n"])
    which = g.input("which", np.bool_, [])
    then, other = g.body("then"), g.body("else")
    then.output(then.op.Add(x, np.float32(1), outputs=["a"]))
    other.output(other.op.Neg(x, outputs=["b"]))
    y = g.op.If(which, then_branch=then, else_branch=other, outputs=["y"])
    g.output(y, np.float32, ["n"])
    session = heirloom.Session(g.build())
    assert session.run({"x": [1.0], "which": True})["y"].tolist() == [2]
    assert session.run({"x": [1.0], "which": False})["y"].tolist() == [-1]


def test_functions_are_called_by_domain_and_name():
    f = heirloom.FunctionBuilder("mine", "Twice")
    f.output(f.op.Add(a := f.input("a"), a))
    g = heirloom.GraphBuilder(domains={"mine": 1})
    g.function(f)
    x = g.input("x", np.float32, ["n"])
    g.output(g.op("mine").Twice(x, outputs=["y"]), np.float32, ["n"])
    assert heirloom.Session(g.build()).run({"x": [3.0]})["y"].tolist() == [6]


def test_what_is_wrong_is_said_by_the_call_that_is_wrong():
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n"])
    with pytest.raises(heirloom.ModelError, match="`x`") as taken:
        g.input("x", np.float32)
    assert taken.value.kind == "call" and "taken" in taken.value.reason
    with pytest.raises(heirloom.ModelError, match="nowhere"):
        g.output("nowhere", np.float32, ["n"])
    with pytest.raises(heirloom.ModelError):
        g.op("unknown.domain").Thing(x)
    with pytest.raises(TypeError, match="no element type"):
        g.input("z", "float13")
    g.output(x, np.float32, ["n"])
    g.build()
    with pytest.raises(RuntimeError, match="finished"):
        g.input("late", np.float32)


def test_missing_kernels_are_all_told():
    g = heirloom.GraphBuilder(domains={"strange": 1})
    x = g.input("x", np.float32, ["n"])
    g.output(g.op("strange").Second(g.op("strange").First(x), outputs=["y"]), np.float32, ["n"])
    with pytest.raises(heirloom.SessionError) as refused:
        heirloom.Session(g.build())
    assert refused.value.kind == "nodes" and [op for _, op, _ in refused.value.nodes] == ["First", "Second"]


class Block(heirloom.Struct, type_id=990_018):
    scale = heirloom.Field(np.float16)
    codes = heirloom.Field("UINT4", [32])


def test_struct_types_know_their_layout():
    assert Block.record_bytes == 18 and Block.bit_size == 144
    assert [(f["path"], f["bit_offset"]) for f in Block.layout.fields] == [("scale", 0), ("codes", 16)]
    assert "scale: FLOAT16" in repr(Block.layout)
    html = Block.layout._repr_html_()
    assert html.count('title="bit ') == 144 and "990018" in html
    assert Block.dtype().itemsize == 18
    with pytest.raises(heirloom.StructError):
        type("Bad", (heirloom.Struct,), {"a": heirloom.Bits(0)})


def test_encoded_initializers_come_from_structured_arrays_in_place():
    records = np.zeros(4, Block.dtype())
    records["scale"] = 0.5
    records["codes"] = 0x21
    g = heirloom.GraphBuilder()
    g.encoded("w", Block, records, np.float32, [4, 32])
    x = g.input("x", np.float32, ["n"])
    g.output(g.op.Identity(x), np.float32, ["n"])
    value = g.build().initializer("w")
    assert value.address == address(records) and value.nbytes == 72 and value.type_id == 990_018
    assert value.shape == (4, 32) and value.dtype == "FLOAT" and value.record_bytes == 18
    assert bytes(value.payload) == records.tobytes()
    padded = np.zeros(4, np.dtype([("scale", np.float16), ("gap", np.uint8), ("codes", np.uint8, 15)]))
    with pytest.raises(heirloom.StructError, match="gap"):
        heirloom.GraphBuilder().encoded("w", Block, padded, np.float32, [4, 32])
    moved = np.zeros(4, np.dtype([("codes", np.uint8, 16), ("scale", np.float16)]))
    with pytest.raises(heirloom.StructError, match="begins at"):
        heirloom.GraphBuilder().encoded("w", Block, moved, np.float32, [4, 32])
    with pytest.raises(heirloom.ModelError, match="whole number of records"):
        heirloom.GraphBuilder().encoded("w", Block, np.zeros(17, np.uint8))


def test_affine_codes_are_decoded_as_dequantize_linear_does():
    codes = np.array([[1, 2, -3, 4], [0, -1, 7, -8]]).astype(ml_dtypes.int4)
    scale = np.array([[0.5, 2.0], [1.0, 0.25]], np.float32)
    g = heirloom.GraphBuilder()
    g.affine("w", codes, scale, axis=1, block_size=2)
    x = g.input("x", np.float32, ["n"])
    g.output(g.op.Identity(x), np.float32, ["n"])
    decoded = g.build().initializer("w").decode()
    np.testing.assert_array_equal(decoded, codes.astype(np.float32) * np.repeat(scale, 2, axis=1))


def test_quantizing_reports_the_loss_and_decoding_gives_it_back():
    w = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    g = heirloom.GraphBuilder()
    x = g.input("x", np.float32, ["n", 64])
    g.output(g.op.MatMul(x, g.initializer("w", w), outputs=["y"]), np.float32, ["n", 64])
    model = g.build()
    small = model.quantize("q8_0", include=["w"])
    (loss,) = small.tensors
    assert loss.name == "w" and loss.bytes_before == 16384 and loss.bytes_after == 4352
    assert 0 < loss.rmse < 0.01 * loss.rms
    back = small.model.quantize("float32").model.initializer("w")
    assert abs(float(np.sqrt(np.mean((back - w) ** 2))) - loss.rmse) < 1e-6
    with pytest.raises(ValueError, match="there is no format `q9`"):
        model.quantize("q9")
    with pytest.raises(heirloom.QuantizeError):
        model.quantize("q8_0", include=["nothing*"])


def test_models_and_sessions_say_what_they_are():
    model = acc()
    assert repr(model) == "heirloom.Model('acc', 2 nodes, 0 constants)"
    session = heirloom.Session(model, threads=1)
    assert repr(session) == "heirloom.Session((x: FLOAT[n]) -> (y: FLOAT[n]), 1 persistent, threads=1)"
    assert "s &lt;- " not in model._repr_html_() and "<table>" in session._repr_html_()
    assert "s <- s_next" in str(model.inspect())
    assert model.inspect()["bindings"] == [("s", "s_next")]
    assert [port.name for port in session.inputs] == ["x", "s"] and session.inputs[1].persistent
    assert session.state_spec()[0].output == "s_next"


def test_every_public_thing_is_documented_and_has_readable_help():
    for name in heirloom.__all__:
        thing = getattr(heirloom, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__doc__, name
            members = [m for m in vars(thing).values() if inspect.isfunction(m)] if inspect.isclass(thing) else []
            for member in members:
                if not member.__name__.startswith("_") and thing.__module__.startswith("heirloom"):
                    assert member.__doc__, f"{name}.{member.__name__}"
    text = pydoc.plain(pydoc.render_doc(heirloom.Session))
    assert "LayoutError" in text and "Returns:" in text


@pytest.mark.parametrize("module", ["_arrays", "_builder", "_structs", "_session", "_model", "llm"])
def test_the_examples_in_the_documentation_run(module):
    import importlib

    names = {**vars(heirloom), "np": np, "heirloom": heirloom}
    found = doctest.testmod(importlib.import_module(f"heirloom.{module}"), extraglobs=names)
    assert found.failed == 0


def test_the_package_ships_its_types():
    folder = os.path.dirname(heirloom.__file__)
    assert {"py.typed", "_native.pyi"} <= set(os.listdir(folder))
    stub = open(os.path.join(folder, "_native.pyi"), encoding="utf-8").read()
    from heirloom import _native

    for name, thing in vars(_native).items():
        if inspect.isclass(thing):
            assert f"class {name}" in stub, name
            for member in vars(thing):
                if not member.startswith("_"):
                    assert f"def {member}(" in stub, f"{name}.{member}"
