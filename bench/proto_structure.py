"""Structure-heavy files: a model of 100,000 nodes, read and written by the `onnx` package and by heirloom-proto.

    python bench/proto_structure.py [--nodes N] [--rounds R]

Each engine runs in a process of its own, in turns; medians and the ratio to `onnx` are printed. A round reads the
bytes, visits every node, and writes the model anew.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

PYTHON = r"""
import json, resource, sys, time
import onnx
data = open(sys.argv[1], "rb").read()
def anonymous():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("RssAnon")) * 1024
before = anonymous()
start = time.process_time()
model = onnx.ModelProto.FromString(data)
decoded = time.process_time()
memory = anonymous() - before
start_encode = time.process_time()
out = model.SerializeToString()
encoded = time.process_time()
print(json.dumps({"decode_ms": (decoded - start) * 1e3, "encode_ms": (encoded - start_encode) * 1e3,
                  "memory_mb": memory / 1e6, "bytes": len(out)}))
"""


def make(path, nodes):
    import onnx
    from onnx import TensorProto, helper

    body = []
    values = []
    for i in range(nodes):
        if i % 4 == 0:
            body.append(
                helper.make_node(
                    "Conv",
                    [f"/layer.{i}/value", f"layer.{i}.weight"],
                    [f"/layer.{i + 1}/value"],
                    name=f"/layer.{i}/Conv",
                    kernel_shape=[3, 3],
                    group=1,
                )
            )
        elif i % 4 == 1:
            body.append(
                helper.make_node(
                    "Transpose",
                    [f"/layer.{i}/value"],
                    [f"/layer.{i + 1}/value"],
                    name=f"/layer.{i}/Transpose",
                    perm=[0, 2, 1, 3],
                )
            )
        else:
            body.append(
                helper.make_node(
                    "Add",
                    [f"/layer.{i}/value", f"/layer.{i - 1}/value"],
                    [f"/layer.{i + 1}/value"],
                    name=f"/layer.{i}/Add",
                )
            )
        if i % 2 == 0:
            values.append(
                helper.make_tensor_value_info(f"/layer.{i + 1}/value", TensorProto.FLOAT, ["batch", 64, 32, 32])
            )
    graph = helper.make_graph(body, "structure", [], [], value_info=values)
    onnx.save(helper.make_model(graph), path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--package", "heirloom-proto", "--example", "structure"]
    subprocess.run(build, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/structure.onnx"
        make(path, args.nodes)
        engines = {
            "onnx": [sys.executable, "-c", PYTHON, path],
            "heirloom": [ROOT / "target/release/examples/structure", path],
        }
        rounds = {name: [] for name in engines}
        for _ in range(args.rounds):
            for name, command in engines.items():
                rounds[name].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    medians = {}
    for name, results in rounds.items():
        assert len({result["bytes"] for result in results}) == 1
        keys = [key for key in results[0] if key != "bytes"]
        medians[name] = {key: statistics.median(result[key] for result in results) for key in keys}
        spread = {key: (min(r[key] for r in results), max(r[key] for r in results)) for key in keys}
        for key in keys:
            low, high = spread[key]
            print(f"{name:9} {key:12} {medians[name][key]:9.2f}   ({low:.2f} to {high:.2f})")
    assert rounds["onnx"][0]["bytes"] == rounds["heirloom"][0]["bytes"]
    for key in medians["onnx"]:
        print(f"heirloom / onnx, {key}: {medians['heirloom'][key] / medians['onnx'][key]:.3f}")


if __name__ == "__main__":
    main()
