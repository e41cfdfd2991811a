"""The `onnx` package and scripts for ONNX Runtime."""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path

import heirloom
import numpy as np
import pytest
from conftest import acc

onnx = pytest.importorskip("onnx")
import onnx.backend.test  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402


def test_models_go_to_onnx_and_back_with_all_that_onnx_does_not_know():
    model = acc()
    proto = model.to_onnx()
    assert [node.op_type for node in proto.graph.node] == ["Add", "Identity"]
    proto.graph.doc_string = "changed there"
    back = heirloom.from_onnx(proto)
    assert back.bindings == {"s": "s_next"} and back.to_onnx().graph.doc_string == "changed there"


@pytest.fixture
def script_model(tmp_path):
    """A small network as exporters write them, opset 13."""
    rng = np.random.default_rng(0)
    initializers = [
        onnx.numpy_helper.from_array(rng.normal(size=(3, 8)).astype(np.float32), "w"),
        onnx.numpy_helper.from_array(rng.normal(size=8).astype(np.float32), "b"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["hb"]),
        helper.make_node("Relu", ["hb"], ["r"]),
        helper.make_node("Softmax", ["r"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["probabilities"], ["label"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, ["batch"]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 8]),
        ],
        initializers,
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


#: As scripts for ONNX Runtime are written, with the module to import left open.
SCRIPT = """
    import {module} as rt
    import numpy as np

    options = rt.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_ALL
    sess = rt.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    input_name = sess.get_inputs()[0].name
    label_name = sess.get_outputs()[0].name
    X = np.asfortranarray(np.linspace(-1, 1, 12, dtype=np.float64).reshape(4, 3))
    labels = sess.run([label_name], {{input_name: X.astype(np.float32)}})[0]
    result = [labels, sess.run(None, {{input_name: X.astype(np.float32)[::-1]}})]
    shapes = [(i.name, i.type, i.shape) for i in sess.get_inputs() + sess.get_outputs()]
    providers = rt.get_available_providers()[-1:], sess.get_providers()
"""


def test_a_script_for_onnx_runtime_runs_with_one_import_changed(script_model):
    pytest.importorskip("onnxruntime")
    got = {}
    for module in ["onnxruntime", "heirloom.onnxruntime"]:
        names = {"path": str(script_model)}
        exec(textwrap.dedent(SCRIPT.format(module=module)), names)
        got[module] = names
    ours, theirs = got["heirloom.onnxruntime"], got["onnxruntime"]
    assert ours["shapes"] == theirs["shapes"] and ours["providers"][1] == theirs["providers"][1]
    np.testing.assert_array_equal(ours["result"][0], theirs["result"][0])
    for a, b in zip(ours["result"][1], theirs["result"][1]):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_the_other_copies_is_copied_here_and_nowhere_else(script_model):
    import heirloom.onnxruntime as ort

    backwards = np.ones((2, 3), np.float32)[:, ::-1]
    (label, _) = ort.InferenceSession(script_model).run(None, {"x": backwards})
    assert label.shape == (2,)
    with pytest.raises(heirloom.LayoutError):
        heirloom.Session(script_model).run({"x": backwards})
    with pytest.raises(ort.InvalidArgument):
        ort.InferenceSession(script_model).run(["nothing"], {"x": backwards})


NOT_PASSED = Path(__file__).resolve().parents[2] / "tests" / "conformance" / "not-passed.txt"


def test_the_onnx_packages_own_runner_passes_the_node_cases_that_the_program_passes():
    import heirloom.backend

    suite = onnx.backend.test.BackendTest(heirloom.backend, __name__)
    version = onnx.__version__
    failed, passed = set(), 0
    with warnings.catch_warnings():
        # Of the suite's own computations.
        warnings.simplefilter("ignore")
        (kind,) = (kind for name, kind in suite.test_cases.items() if "Node" in name)
        for name in (name for name in dir(kind) if name.startswith("test_") and name.endswith("_cpu")):
            try:
                getattr(kind(name), name)()
                passed += 1
            except (AssertionError, TypeError, heirloom.HeirloomError):
                failed.add(name.removesuffix("_cpu"))
    listed = re.findall(rf"^{re.escape(version)}/node/(\w+):", NOT_PASSED.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) > 10, f"{NOT_PASSED.name} lists no cases of onnx {version}"
    # The runner has no way to compare the empty optional that this one gives.
    assert failed == {*listed, "test_loop16_seq_none"}
    assert passed >= 1860
