"""The `onnx` package and scripts for ONNX Runtime."""

from __future__ import annotations

import textwrap

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


#: Node cases of the standard that say something about what arrays of each kind go through.
CASES = [
    "test_add_bcast_cpu", "test_cast_FLOAT_to_BFLOAT16_cpu", "test_concat_2d_axis_0_cpu", "test_gather_0_cpu",
    "test_gemm_all_attributes_cpu", "test_identity_cpu", "test_identity_opt_cpu", "test_identity_sequence_cpu",
    "test_if_cpu", "test_loop11_cpu", "test_matmul_3d_cpu", "test_relu_cpu", "test_sequence_insert_at_back_cpu",
    "test_softmax_axis_1_cpu", "test_string_concat_cpu", "test_transpose_default_cpu", "test_where_example_cpu",
    "test_dequantizelinear_int4_cpu", "test_cast_FLOAT_to_INT4_cpu", "test_unique_sorted_without_axis_cpu",
]  # fmt: skip


def test_the_onnx_packages_own_backend_tests_run():
    import heirloom.backend

    suite = onnx.backend.test.BackendTest(heirloom.backend, __name__)
    ran = []
    for kind in suite.test_cases.values():
        for name in CASES:
            if hasattr(kind, name):
                try:
                    getattr(kind(name), name)()
                except heirloom.SessionError as error:
                    # An operator that Heirloom lacks is told; the suite that counts them is the Rust one.
                    assert error.kind in ("nodes", "missing_consumer"), name
                    continue
                ran.append(name)
    assert len(ran) >= 15, ran
