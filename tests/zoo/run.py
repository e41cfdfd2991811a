"""Runs the real models and compares all outputs of all calls with ONNX Runtime's.

    python tests/zoo/run.py [NAME …] [--stateful] [--prepack]

A model with state runs twice: with its state carried by hand, and with its pairs bound by `heirloom bind`; the two must
agree to the bit, and with ONNX Runtime within the list's tolerance of each output's peak. Quantized models may agree
with ONNX Runtime either with its fused kernels or without, and with its exact sums of 8-bit products where its usual ones
saturate. Fetch the models first: python tests/zoo/fetch.py.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from models import Entry, entries
from reference import calls, distance, read_outputs, session, write_feeds

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import heirloom_cli  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stateful", action="store_true", help="only models with state")
    parser.add_argument("--prepack", action="store_true", help="with prepacked weights")
    options = parser.parse_args()
    passed, failed = 0, []
    for entry in entries(options.names):
        if options.stateful and not entry.state:
            continue
        problem = check(entry, ["--prepack"] if options.prepack else [])
        if problem:
            failed.append(entry.name)
        else:
            passed += 1
        print(f"{entry.name:28} {problem or 'ok'}", flush=True)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


def check(entry: Entry, arguments: list[str]) -> str | None:
    """What is wrong with a model's outputs."""
    arguments = [*arguments, "--free-symbols"] if entry.free_symbols else arguments
    steps = list(calls(entry, session(entry.path)))
    references = [[outputs for _, outputs in steps]]
    if entry.quantized:
        fed = [feeds for feeds, _ in steps]
        for optimize, exact in [(False, False), (True, True), (False, True)]:
            other = calls(entry, session(entry.path, optimize=optimize, exact=exact), fed)
            references.append([outputs for _, outputs in other])
    with tempfile.TemporaryDirectory() as temporary:
        data, by_hand = Path(temporary) / "data", Path(temporary) / "by_hand"
        write_feeds(entry, data, steps)
        carried = [argument for pair in entry.pairs for argument in ("--carry", *pair)]
        carried += [argument for pair in entry.kept for argument in ("--carry-first", *pair)]
        problem = run("run", entry.path, "--data", data, "--save", by_hand, *carried, *arguments)
        if problem:
            return problem
        actual = [read_outputs(by_hand, call) for call in range(entry.steps)]
        worst = far(entry, actual, references)
        if worst:
            return worst
        if not entry.state:
            return None
        bound, states = Path(temporary) / "bound.onnx", Path(temporary) / "states"
        pairs = [argument for pair in entry.pairs for argument in ("--pair", *pair)]
        pairs += [argument for pair in entry.kept for argument in ("--keep-first", *pair)]
        root = ["--external-root", entry.path.parent]
        problem = run("bind", entry.path, *pairs, "--write", "--output", bound, *root)
        problem = problem or run("run", bound, "--data", data, "--save", states, *root, *arguments)
        if problem:
            return problem
        for call, expected in enumerate(actual):
            outputs = read_outputs(states, call)
            for name, value in expected.items():
                if outputs[name].tobytes() != value.tobytes():
                    return f"call {call}: `{name}` differs between the bound model and the loop by hand"
    return None


def far(entry: Entry, actual: list[dict], references: list[list[dict]]) -> str | None:
    """Where the outputs are too far from every reference."""
    for call, outputs in enumerate(actual):
        for name, value in outputs.items():
            distances = [distance(value, expected[call][name]) for expected in references]
            allowed = entry.tolerance
            peak = np.abs(references[0][call][name].astype(np.float64)).max(initial=1e-30) if (
                value.dtype.kind == "f") else 1.0
            allowed = max(allowed, entry.tolerance_abs / max(peak, 1e-30))
            if min(distances) > allowed:
                return f"call {call}: `{name}` is {min(distances):.2e} of its peak away, {allowed:.0e} is allowed"
    return None


def run(*command) -> str | None:
    """What the program says where it fails."""
    done = subprocess.run([heirloom_cli.binary(), *map(str, command)], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
