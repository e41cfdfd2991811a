#!/usr/bin/env python3
"""Shapes that Heirloom infers, beside those of onnx.shape_inference and those that ONNX Runtime makes.

usage: shapes.py SCRIPTS MODELS [NAME ...] [--verbose]

SCRIPTS is a folder with `manifest.json` and `zoo_feeds.py`, MODELS one with MODELS/NAME/FILE as the manifest says.
Of each model's main graph, the table says how many values there are, of how many onnx (strict where the model allows it,
with data propagation) and Heirloom know all extents (as numbers or by symbols that inputs declare), where the two
contradict each other, and where extents that Heirloom infers are not those of a call of ONNX Runtime. Exit status 1 where
anything disagrees.
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("HEIRLOOM_BIN") or os.path.join(HERE, "..", "target", "release", "heirloom")


def onnx_shapes(path):
    """Element type and extents of each value as onnx infers them, and how strictly it could."""
    model = onnx.load(path)
    mode = "strict"
    try:
        model = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=True, data_prop=True)
    except Exception:
        mode = "lax"
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    found = {}
    inputs = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output):
        if not value.type.HasField("tensor_type"):
            continue
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            found[value.name] = (tensor.elem_type, None)
            continue
        dims = []
        for dim in tensor.shape.dim:
            if dim.HasField("dim_value"):
                dims.append(dim.dim_value)
            elif dim.dim_param and (dim.dim_param in inputs or not dim.dim_param.startswith("unk__")):
                dims.append(dim.dim_param)
            else:
                dims.append(None)
        found[value.name] = (tensor.elem_type, dims)
    return found, mode


def run_shapes(path, entry, feeds_of):
    """Shape and element type of each value of the main graph in one call of ONNX Runtime."""
    model = onnx.load(path)
    names = [name for node in model.graph.node for name in node.output if name]
    declared = {value.name for value in model.graph.output}
    for name in names:
        if name not in declared:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    data = model.SerializeToString()
    folder = os.path.dirname(path)
    copy = os.path.join(folder, ".shapes.onnx")
    with open(copy, "wb") as file:
        file.write(data)
    try:
        session = ort.InferenceSession(copy, options, providers=["CPUExecutionProvider"])
    finally:
        os.remove(copy)
    feeds = {}
    for value in session.get_inputs():
        spec = entry["feeds"].get(value.name)
        if spec is not None:
            feeds[value.name] = feeds_of.make(value.name, spec, feeds_of.ORT[value.type], entry["name"], 0)
    outputs = [value.name for value in session.get_outputs()]
    results = session.run(outputs, feeds)
    shapes = {name: list(array.shape) for name, array in zip(outputs, results) if isinstance(array, np.ndarray)}
    dtypes = {name: array.dtype for name, array in zip(outputs, results) if isinstance(array, np.ndarray)}
    return shapes, dtypes, {name: list(np.shape(array)) for name, array in feeds.items()}


def our_shapes(path, shapes):
    command = [BINARY, "infer", path, "--json"]
    for name, shape in shapes.items():
        command += ["--shape", f"{name}={','.join(map(str, shape))}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(done.stderr.strip()[-300:])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    values = {line["value"]: line for line in lines if line.get("graph") == ""}
    return values, [line["conflict"] for line in lines if "conflict" in line], [
        line["no_rule"] for line in lines if "no_rule" in line
    ]


def main():
    arguments = [it for it in sys.argv[1:] if it != "--verbose"]
    verbose = "--verbose" in sys.argv
    scripts, models, only = arguments[0], arguments[1], arguments[2:]
    sys.path.insert(0, scripts)
    import zoo_feeds

    with open(os.path.join(scripts, "manifest.json")) as file:
        entries = json.load(file)["models"]
    print(f"{'model':28} {'values':>6} {'onnx':>6} {'mode':>6} {'ours':>6} {'ranked':>6} {'clash':>6} {'ran':>6} {'wrong':>6} {'conflicts':>9}")
    totals, bad, worse = [0] * 4, 0, []
    for entry in entries:
        path = os.path.join(models, entry["name"], entry["file"])
        if (only and entry["name"] not in only) or not os.path.exists(path):
            continue
        theirs, mode = onnx_shapes(path)
        try:
            ran, dtypes, feeds = run_shapes(path, entry, zoo_feeds)
        except Exception as error:
            ran, dtypes, feeds = {}, {}, {}
            print(f"{entry['name']}: no call: {str(error)[:200]}", file=sys.stderr)
        ours, conflicts, no_rule = our_shapes(path, feeds)
        graph = onnx.load(path, load_external_data=False).graph
        names = [name for node in graph.node for name in node.output if name]
        known = sum(1 for name in names if theirs.get(name, (0, None))[1] is not None and None not in theirs[name][1])
        complete = sum(1 for name in names if ours[name]["complete"])
        ranked = sum(1 for name in names if ours[name]["dims"] is not None)
        clash, wrong, checked = [], [], 0
        for name in names:
            mine = ours[name]
            elem, dims = theirs.get(name, (0, None))
            if elem and mine["dtype"] and onnx.TensorProto.DataType.Name(elem) != mine["dtype"]:
                clash.append((name, onnx.TensorProto.DataType.Name(elem), mine["type"]))
            elif dims is not None and mine["dims"] is not None:
                pairs = list(zip(dims, mine["dims"]))
                if len(dims) != len(mine["dims"]) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
                    clash.append((name, dims, mine["type"]))
            if name in ran and mine["dims"] is not None:
                checked += mine["shape"] is not None
                known_dtype = mine["dtype"]
                if mine["shape"] is not None and mine["shape"] != ran[name]:
                    wrong.append((name, ran[name], mine["type"], mine["shape"]))
                elif len(mine["dims"]) != len(ran[name]):
                    wrong.append((name, ran[name], mine["type"], None))
                elif dtypes[name] == np.float32 and known_dtype != "FLOAT" or dtypes[name] == np.int64 and known_dtype != "INT64":
                    wrong.append((name, str(dtypes[name]), mine["type"], None))
            if verbose and not mine["complete"] and dims is not None and None not in dims:
                print("  only onnx knows", name, dims, mine["type"])
        if verbose:
            for it in clash:
                print("  clash", *it)
            for it in wrong:
                print("  wrong", *it)
            for it in conflicts:
                print("  conflict", it)
            if no_rule:
                print("  no rule", no_rule)
            nodes = {name: node for node in graph.node for name in node.output}
            missing = {}
            for name in names:
                if not ours[name]["complete"]:
                    node = nodes[name]
                    if all(not i or i not in ours or ours[i]["complete"] for i in node.input):
                        missing.setdefault(node.op_type, []).append((name, ours[name]["type"]))
            for op, values in missing.items():
                print("  first unknown", op, len(values), values[:3])
        if complete < known:
            worse.append(entry["name"])
        bad += len(clash) + len(wrong)
        for at, value in enumerate([len(names), known, complete, checked]):
            totals[at] += value
        print(f"{entry['name']:28} {len(names):6} {known:6} {mode:>6} {complete:6} {ranked:6} {len(clash):6} {checked:6} {len(wrong):6} {len(conflicts):9}")
    print(f"{'all':28} {totals[0]:6} {totals[1]:6} {'':6} {totals[2]:6} {'':6} {'':6} {totals[3]:6}")
    if worse:
        print("less often complete than onnx:", ", ".join(worse))
    return 1 if bad or worse else 0


if __name__ == "__main__":
    sys.exit(main())
