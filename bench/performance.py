"""Measures language models beside llama.cpp and writes docs/performance.md: one command for all its tables.

    python bench/performance.py --rounds 5
    python bench/performance.py --only decode --rounds 5

A row is measured by `bench/compare.py`'s rules: each engine in a process of its own, rounds interleaved, medians, and the
ratio to the best of llama.cpp's settings. The last table is `heirloom bench --roofline`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from statistics import median

import heirloom_cli
import peers
from compare import best_of_others, measure, ratios, spread
from engines import Heirloom, Task, llama_cpp_settings, machine

PAGE = heirloom_cli.ROOT / "docs" / "performance.md"

QWEN, TWIN, SMOL = "Qwen2.5-Coder-0.5B-Instruct, as published", "… its Q4_0 twin", "SmolLM2-135M-Instruct, Q4_1"

# Group, what is shown, short name of the model, whether its twin, the task.
ROWS = [
    ("decode", QWEN, "qwen", False, Task(generate=64, depth=32)),
    ("decode", QWEN, "qwen", False, Task(generate=64, depth=1024)),
    ("decode", QWEN, "qwen", False, Task(generate=64, depth=4096)),
    ("decode", TWIN, "qwen", True, Task(generate=64, depth=32)),
    ("decode", TWIN, "qwen", True, Task(generate=64, depth=1024)),
    ("decode", SMOL, "smollm2", False, Task(generate=64, depth=32)),
    ("decode", SMOL, "smollm2", False, Task(generate=64, depth=1024)),
    ("single", QWEN, "qwen", False, Task(generate=32, depth=32, threads=1)),
    ("single", SMOL, "smollm2", False, Task(generate=64, depth=32, threads=1)),
    ("prefill", QWEN, "qwen", False, Task(prompt=512)),
    ("prefill", TWIN, "qwen", True, Task(prompt=512)),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=sorted({row[0] for row in ROWS}), help="one group of rows")
    parser.add_argument("--deepest", type=int, default=4096, help="leave out contexts beyond this")
    parser.add_argument("--write", default=str(PAGE), help="the page to write; - prints it")
    options = parser.parse_args()
    lines = []
    for group, title, model, twin, task in ROWS:
        if options.only in (None, group) and task.depth <= options.deepest:
            print(f"{title}: {task}", file=sys.stderr, flush=True)
            lines.append(row(title, model, twin, task, options.rounds))
    page = "\n".join([*heading(options.rounds), *lines, "", *roofline(), ""])
    if options.write == "-":
        print(page)
    else:
        Path(options.write).write_text(page, encoding="utf-8")
    return 0


def heading(rounds: int) -> list[str]:
    """What the numbers are, and where they come from."""
    version = subprocess.run([peers.llama_cpp("llama-bench"), "--version"], capture_output=True, text=True)
    known = (version.stderr + version.stdout).strip().splitlines() or ["version unknown"]
    return [
        "# Performance",
        "",
        "Written by `python bench/performance.py`; see `bench/README.md` for each measurement by itself. Ratios are of one run,",
        f"interleaved, each engine in a process of its own, medians of {rounds} rounds with the least and the greatest behind",
        "them. llama.cpp's number is that of its best setting of flash attention and repacking for that row.",
        "",
        f"{date.today()}; {machine()}; llama.cpp {known[0].removeprefix('version: ')}.",
        "",
        "| model | what | Heirloom, tokens/s | llama.cpp, tokens/s | ratio (least–greatest) |",
        "|---|---|---|---|---|",
    ]


def row(title: str, model: str, twin: bool, task: Task, rounds: int) -> str:
    """One row of the table, measured."""
    gguf = heirloom_cli.gguf_file(model)
    gguf = peers.q4_0_twin(gguf) if twin else gguf
    speeds = measure([Heirloom(gguf), *llama_cpp_settings(gguf)], task, rounds)
    best = best_of_others(speeds)
    ours = median(next(iter(speeds.values())))
    return f"| {title} | {task} | {ours:.1f} | {median(speeds[best]):.1f} | {spread(ratios(speeds, best))} |"


def roofline() -> list[str]:
    """Where a token's time goes, beside a pure read of the same weights."""
    model = heirloom_cli.overlay(heirloom_cli.gguf_file("qwen"))
    found = json.loads(heirloom_cli.run("bench", model, "--roofline", "--json"))
    decode, prefill, limits = found["decode"], found["prefill"], found["limits"]
    lines = [
        f"## Where the time goes: {QWEN}",
        "",
        f"A token takes {decode['ms_per_token']:.2f} ms, a pure read of its weights, measured in turns with the tokens, "
        f"{decode['pure_read_ms']:.2f} ms: {100 * decode['fraction_of_pure_read']:.0f} % of what reading allows "
        f"({limits['read_bytes_per_s'] / 1e9:.1f} GB/s, {found['threads']} threads, {found['isa']}).",
        "",
        "| group | ms per token | MB | of the read limit | prompt of " + f"{prefill['tokens']}: ms | of the 8-bit peak |",
        "|---|---|---|---|---|---|",
    ]
    for token, prompt in zip(decode["groups"], prefill["groups"]):
        share = [f"{100 * it['fraction_of_limit']:.0f} %" if it["fraction_of_limit"] else "" for it in (token, prompt)]
        lines.append(
            f"| {token['group']} | {token['ms']:.2f} | {token['bytes'] / 1e6:.1f} | {share[0]} | {prompt['ms']:.0f} | {share[1]} |"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
