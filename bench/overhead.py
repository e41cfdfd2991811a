#!/usr/bin/env python3
"""What a call costs beside its kernels when a model keeps many values: Heirloom's state against ONNX Runtime with NumPy feeds
and with IOBinding, on the same model in the same run.

usage: overhead.py [--bindings 97] [--nodes 4] [--calls 2000] [--rounds 5]        needs: numpy onnxruntime, cargo
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import engines
import heirloom_cli


def heirloom(model: Path, bindings: int, nodes: int, calls: int) -> dict:
    """Writes the model and runs it."""
    command = ["cargo", "run", "--release", "--quiet", "--package", "heirloom", "--example", "state_overhead", "--"]
    sizes = [str(model), str(bindings), str(nodes), str(calls)]
    done = subprocess.run(command + sizes, cwd=heirloom_cli.ROOT, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def onnx_runtime(model: Path, bindings: int, calls: int, bound: bool) -> float:
    """Microseconds of a call that feeds all states and keeps all next ones."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [(f"state.{at}", f"next.{at}") for at in range(bindings)]
    x = np.array([[1, 2, 3, 4]], np.float32)
    times = []
    if bound:
        binding = session.io_binding()
        states = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, 4), np.float32)) for name, _ in names}
        for _ in range(calls):
            start = time.perf_counter()
            binding.bind_cpu_input("x", x)
            for name, _ in names:
                binding.bind_ortvalue_input(name, states[name])
            binding.bind_output("y")
            for _, name in names:
                binding.bind_output(name)
            session.run_with_iobinding(binding)
            outputs = binding.get_outputs()
            states = {name: value for (name, _), value in zip(names, outputs[1:])}
            times.append(time.perf_counter() - start)
    else:
        states = {name: np.zeros((1, 4), np.float32) for name, _ in names}
        wanted = ["y", *(name for _, name in names)]
        for _ in range(calls):
            start = time.perf_counter()
            outputs = session.run(wanted, {"x": x, **states})
            states = {name: value for (name, _), value in zip(names, outputs[1:])}
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bindings", type=int, default=97)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    ours, rest, numpy, bound = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "overhead.onnx"
        for _ in range(args.rounds):
            report = heirloom(model, args.bindings, args.nodes, args.calls)
            assert report["state_copied_bytes"] == 0
            ours.append(report["call_us"])
            rest.append(report["call_us"] - report["kernels_us"])
            numpy.append(onnx_runtime(model, args.bindings, args.calls, bound=False))
            bound.append(onnx_runtime(model, args.bindings, args.calls, bound=True))
    print(engines.machine())
    print(f"{args.bindings} bindings, {args.nodes} other nodes, one thread, medians of {args.rounds} rounds of {args.calls} calls")
    print(f"heirloom state        {statistics.median(ours):8.1f} µs a call ({statistics.median(rest):.1f} without kernels)")
    for name, times in [("ONNX Runtime, NumPy", numpy), ("ONNX Runtime, bound", bound)]:
        ratio = statistics.median(t / o for t, o in zip(times, ours))
        print(f"{name}   {statistics.median(times):8.1f} µs a call, {ratio:.1f} times as long")


if __name__ == "__main__":
    main()
