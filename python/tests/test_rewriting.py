"""Models rewritten: inferred, optimized, said in standard ONNX; and states in files."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import heirloom


def accumulator() -> heirloom.Model:
    """`next = state + x`, with a constant that can be folded and a node that nobody reads."""
    g = heirloom.GraphBuilder("accumulator")
    x, state = g.input("x", "float32", ["n"]), g.input("state", "float32", ["n"])
    one = g.op.Add(g.constant(np.float32(0.25)), g.constant(np.float32(0.75)))
    g.op.Neg(x)
    g.output(g.op.Add(state, g.op.Mul(x, one), outputs=["next"]), "float32", ["n"])
    return g.build().bind(state="next")


@pytest.fixture(scope="module")
def model() -> heirloom.Model:
    return accumulator()


def test_inference_names_types_and_contradictions(model):
    found = model.infer()
    assert found["next"] == found["x"] == "FLOAT[n]"
    assert found.conflicts == [] and found.unknown_operators == []
    wrong = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["a", "b"], ["c"])],
        "wrong",
        [
            onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [2, 3]),
            onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [4, 5]),
        ],
        [onnx.helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [2, 5])],
    )
    proto = onnx.helper.make_model(wrong, opset_imports=[onnx.helper.make_opsetid("", 21)])
    (conflict,) = heirloom.from_onnx(proto).infer().conflicts
    assert "3" in conflict and "4" in conflict


def test_passes_fold_and_drop_and_keep_bindings_and_results(model):
    optimized = model.optimize()
    assert optimized.model.bindings == {"state": "next"}
    assert len(optimized.model.to_onnx().graph.node) < len(model.to_onnx().graph.node)
    assert sum(report.nodes_removed for report in optimized.passes) >= 2
    x = np.array([1, -2, 3], np.float32)
    for it in (model, optimized.model):
        with heirloom.Session(it).make_state({"state": np.ones(3, np.float32)}) as state:
            np.testing.assert_array_equal(state.run({"x": x})["next"], x + 1)
    (dead,) = model.optimize(["dead"]).passes
    assert dead.name == "dead" and dead.nodes_removed == 1 and dead.nodes_made == 0
    with pytest.raises(ValueError, match='no pass "dread".*"dead"'):
        model.optimize(["dread"])


def test_standard_onnx_is_refused_where_it_loses_and_runs_elsewhere_where_it_is_lowered(model):
    with pytest.raises(heirloom.ConvertError) as refused:
        model.convert()
    assert refused.value.kind == "losses"
    assert [name for name, _ in refused.value.losses] == ["state <- next"]
    with pytest.raises(ValueError, match="lower=True"):
        model.convert(dense=True)
    converted = model.convert(lower=True)
    assert converted.bindings == {"state": "next"} and converted.weights == {}
    proto = converted.model.to_onnx()
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    value = np.zeros(2, np.float32)
    for _ in range(3):
        (value,) = session.run(["next"], {"x": np.array([1, 2], np.float32), "state": value})
    np.testing.assert_array_equal(value, [3, 6])
    # What is standard already stays as it is.
    assert converted.model.convert().model.to_bytes() == converted.model.to_bytes()


def test_encoded_weights_are_lowered_to_what_onnx_runtime_computes():
    g = heirloom.GraphBuilder("linear")
    weight = np.random.default_rng(3).standard_normal((64, 32)).astype(np.float32)
    x = g.input("x", "float32", ["n", 32])
    g.output(g.op.Gemm(x, g.initializer("w", weight), transB=1, outputs=["y"]), "float32", ["n", 64])
    small = g.build().quantize("q8_0", include=["w"]).model
    lowered = small.convert(lower=True)
    assert list(lowered.weights) == ["w"]
    given = np.random.default_rng(4).standard_normal((3, 32)).astype(np.float32)
    session = onnxruntime.InferenceSession(lowered.model.to_bytes(), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(["y"], {"x": given})
    np.testing.assert_allclose(heirloom.Session(small).run({"x": given})["y"], theirs, rtol=1e-3, atol=1e-2)


def test_a_saved_state_goes_on_in_another_session(model, tmp_path):
    path = tmp_path / "state.bin"
    x = np.array([1, 2, 3], np.float32)
    with heirloom.Session(model).make_state({"state": np.zeros(3, np.float32)}) as state:
        state.run({"x": x})
        state.save(path)
        state.run({"x": x})
        after = state.values()["state"].copy()
    with heirloom.Session(model).load_state(path) as again:
        np.testing.assert_array_equal(again.values()["state"], x)
        again.run({"x": x})
        np.testing.assert_array_equal(again.values()["state"], after)
        assert again.report().counts.state_copied_bytes == 0
        with pytest.raises(heirloom.StateError) as unwritten:
            again.save(tmp_path / "no folder" / "state.bin")
        assert unwritten.value.kind == "file" and "no folder" in unwritten.value.path


def test_a_damaged_state_or_one_of_another_model_is_refused(model, tmp_path):
    path = tmp_path / "state.bin"
    session = heirloom.Session(model)
    with session.make_state({"state": np.zeros(3, np.float32)}) as state:
        state.save(path)
    other = heirloom.Session(model.rename({"x": "y"}))
    with pytest.raises(heirloom.StateError, match="model") as foreign:
        other.load_state(path)
    assert foreign.value.kind == "file" and foreign.value.path == str(path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(heirloom.StateError, match="damaged"):
        session.load_state(path)
    with pytest.raises(heirloom.StateError) as missing:
        session.load_state(tmp_path / "none.bin")
    assert "none.bin" in str(missing.value)


def test_an_output_named_twice_over_is_told_how_it_is_named():
    g = heirloom.GraphBuilder()
    x = g.input("x", "float32", ["n"])
    with pytest.raises(TypeError, match=r'outputs=\["y"\]'):
        g.output("y", g.op.Neg(x))
