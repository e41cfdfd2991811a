"""Heirloom's speed beside ONNX Runtime's on the real models of tests/zoo: medians of calls, ratios, geometric mean.

    python bench/zoo.py [NAME …] [--threads 1 2] [--seconds 1.0] [--no-prepack] [--profile]

Each engine runs in a process of its own, one after the other, on the same inputs; state is carried in both. Heirloom keeps
prepacked weights unless `--no-prepack` is given. `--profile` adds where Heirloom's time goes, by operator.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import heirloom_cli

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "zoo"))

from models import Entry, entries  # noqa: E402

# What ONNX Runtime does in its own process: session, warm-up, timed calls.
OTHER = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from models import entries
from reference import calls, session
entry, = entries([sys.argv[2]])
threads, seconds = int(sys.argv[3]), float(sys.argv[4])
started = time.perf_counter()
engine = session(entry.path, threads)
created = time.perf_counter() - started
fed = [feeds for feeds, _ in calls(entry, engine)]
names = [output.name for output in engine.get_outputs()]
times, at, began = [], 0, time.perf_counter()
while time.perf_counter() - began < 1.2 * seconds or len(times) < 3:
    started = time.perf_counter()
    engine.run(names, fed[at])
    taken = time.perf_counter() - started
    if started - began > 0.2 * seconds:
        times.append(taken)
    at = (at + 1) % len(fed)
times.sort()
print(json.dumps({"create_seconds": created, "median_seconds": times[len(times) // 2]}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="of timed calls for each engine, model and thread count")
    parser.add_argument("--no-prepack", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    for threads in options.threads:
        calls, creations = [], []
        print(f"\n{threads} thread{'s' * (threads > 1)}: milliseconds of a call, ONNX Runtime, Heirloom, ratio; ratio of session creation")
        for entry in entries(options.names):
            other = measure_other(entry, threads, options.seconds)
            own, profile = measure(entry, threads, options)
            if not own:
                print(f"{entry.name:28} {profile}")
                continue
            ratio = own["median_seconds"] / other["median_seconds"]
            creation = own["create_seconds"] / other["create_seconds"]
            calls.append(ratio)
            creations.append(creation)
            milliseconds = [1e3 * engine["median_seconds"] for engine in (other, own)]
            print(f"{entry.name:28} {milliseconds[0]:9.3f} {milliseconds[1]:9.3f} {ratio:6.2f} {creation:8.2f}", flush=True)
            if options.profile:
                print(profile)
        if calls:
            print(f"geometric mean {mean(calls):.2f}, greatest {max(calls):.2f}; session creation {mean(creations):.2f}")
    return 0


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def measure_other(entry: Entry, threads: int, seconds: float) -> dict:
    folder = ROOT / "tests" / "zoo"
    command = [sys.executable, "-c", OTHER, str(folder), entry.name, str(threads), str(seconds)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(entry: Entry, threads: int, options: argparse.Namespace) -> tuple[dict | None, str]:
    """Times, and where they go; or nothing, and what went wrong."""
    from reference import calls, session, write_feeds

    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        write_feeds(entry, data, list(calls(entry, session(entry.path))))
        carried = [argument for pair in entry.pairs for argument in ("--carry", *pair)]
        carried += [argument for pair in entry.kept for argument in ("--carry-first", *pair)]
        command = [heirloom_cli.binary(), "run", entry.path, "--data", data, "--threads", threads, *carried]
        command += ["--time", options.seconds, *["--prepack"] * (not options.no_prepack)]
        command += ["--free-symbols"] * entry.free_symbols + ["--profile"] * options.profile
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[0][:150]
    report, *profile = done.stdout.splitlines()
    return json.loads(report), "\n".join(profile[:12])


if __name__ == "__main__":
    sys.exit(main())
