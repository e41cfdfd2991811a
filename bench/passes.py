#!/usr/bin/env python3
"""Real models before and after `heirloom optimize`, in ONNX Runtime without its own optimizations.

usage: passes.py SCRIPTS MODELS [NAME ...]     (folders as for shapes.py)

Outputs of one call must be equal to the bit, or differ by at most 1e-5 of their greatest value where constants were computed.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("HEIRLOOM_BIN") or os.path.join(HERE, "..", "target", "release", "heirloom")


def outputs(path, entry, feeds_of):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {
        value.name: feeds_of.make(value.name, entry["feeds"][value.name], feeds_of.ORT[value.type], entry["name"], 0)
        for value in session.get_inputs()
        if value.name in entry["feeds"]
    }
    return session.run(None, feeds)


def main():
    scripts, models, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    sys.path.insert(0, scripts)
    import zoo_feeds

    with open(os.path.join(scripts, "manifest.json")) as file:
        entries = json.load(file)["models"]
    bad = 0
    print(f"{'model':28} {'nodes':>6} {'after':>6} {'constants':>9} {'after':>6}  outputs")
    for entry in entries:
        path = os.path.join(models, entry["name"], entry["file"])
        if (only and entry["name"] not in only) or not os.path.exists(path):
            continue
        before = onnx.load(path, load_external_data=False).graph
        handle, out = tempfile.mkstemp(suffix=".onnx", dir=os.path.dirname(path))
        os.close(handle)
        try:
            done = subprocess.run([BINARY, "optimize", path, out], capture_output=True, text=True)
            if done.returncode:
                bad += 1
                print(f"{entry['name']:28} {done.stderr.strip()[-200:]}")
                continue
            after = onnx.load(out, load_external_data=False).graph
            said = "equal"
            for a, b in zip(outputs(path, entry, zoo_feeds), outputs(out, entry, zoo_feeds)):
                a, b = np.asarray(a), np.asarray(b)
                if a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                    continue
                gap = np.abs(a.astype(np.float64) - b).max() / max(np.abs(a).max(), 1e-30) if a.shape == b.shape else np.inf
                said = f"{gap:.1e} apart"
                bad += gap > 1e-5
            print(f"{entry['name']:28} {len(before.node):6} {len(after.node):6} {len(before.initializer):9} {len(after.initializer):6}  {said}")
        finally:
            os.remove(out)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
