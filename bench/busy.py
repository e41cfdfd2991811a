"""Decode speed with another program busy on one core, as a share of the quiet speed, for Heirloom and llama.cpp.

    python bench/busy.py --model qwen
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Iterator

import heirloom_cli
from engines import Heirloom, LlamaCpp, Task, machine

# The lowest share of its quiet speed that Heirloom may fall to.
FLOOR = 0.5


@contextmanager
def busy_core(core: int) -> Iterator[None]:
    """A program that computes without a pause on one core."""
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(program.pid, {core})
    try:
        yield
    finally:
        program.kill()
        program.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(heirloom_cli.MODELS), default="qwen")
    parser.add_argument("--gguf", help="a file to use instead of a named model")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    gguf = Path(options.gguf) if options.gguf else heirloom_cli.gguf_file(options.model)
    task = Task(generate=options.tokens, depth=32, threads=options.threads)
    core = min(os.sched_getaffinity(0))
    engines = [Heirloom(gguf), LlamaCpp(gguf, flash_attention=False, repack=True)]
    print(f"{gguf.name}: {task}; {options.rounds} rounds, core {core} taken\n{machine()}\n")
    shares = {engine.name: [] for engine in engines}
    for number in range(options.rounds):
        print(f"round {number + 1}, load average {os.getloadavg()[0]:.2f}", file=sys.stderr, flush=True)
        for engine in engines:
            quiet = engine.tokens_per_second(task)
            with busy_core(core):
                busy = engine.tokens_per_second(task)
            shares[engine.name].append(busy / quiet)
            print(f"{engine.name:44}{quiet:8.1f} quiet {busy:8.1f} busy", flush=True)
    for name, values in shares.items():
        print(f"{name:44}{median(values):6.2f} of its quiet speed ({min(values):.2f}–{max(values):.2f})")
    return 0 if median(shares[engines[0].name]) >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
