"""One way to ask each engine for its speed: every measurement is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import heirloom_cli
import peers


@dataclass(frozen=True)
class Task:
    """What is timed: `prompt` tokens read from an empty state, or `generate` tokens made behind `depth` others."""

    prompt: int = 0
    generate: int = 0
    depth: int = 0
    threads: int = 2

    def __post_init__(self):
        assert (self.prompt == 0) != (self.generate == 0), "a task is one of prompt and generate"

    def __str__(self) -> str:
        what = f"prompt of {self.prompt}" if self.prompt else f"{self.generate} tokens at context {self.depth}"
        return f"{what}, {self.threads} threads"


class Heirloom:
    """Our own program."""

    name = "heirloom"

    def __init__(self, gguf: Path):
        self.model = heirloom_cli.overlay(gguf)

    def tokens_per_second(self, task: Task) -> float:
        sizes = ["--prompt-tokens", task.prompt, "--generate", task.generate, "--depth", task.depth]
        result = json.loads(heirloom_cli.run("bench", self.model, *sizes, "--threads", task.threads, "--json"))
        return result["prefill_tokens_per_s" if task.prompt else "decode_tokens_per_s"]


@dataclass
class LlamaCpp:
    """llama.cpp's own benchmark program with one choice of its settings."""

    gguf: Path
    flash_attention: bool
    repack: bool
    name: str = field(init=False)

    def __post_init__(self):
        settings = f"flash attention {'on' if self.flash_attention else 'off'}, repack {'on' if self.repack else 'off'}"
        self.name = f"llama.cpp, {settings}"

    def tokens_per_second(self, task: Task) -> float:
        sizes = ["-p", task.prompt, "-n", task.generate, "-d", task.depth, "-t", task.threads]
        settings = ["-fa", "on" if self.flash_attention else "off", "--repack", int(self.repack)]
        command = [peers.llama_cpp("llama-bench"), "-m", self.gguf, "-r", 1, "-o", "json", *sizes, *settings]
        done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)[0]["avg_ts"]


def llama_cpp_settings(gguf: Path) -> list[LlamaCpp]:
    """Every setting whose best counts as llama.cpp's speed."""
    return [LlamaCpp(gguf, flash, repack) for flash in (False, True) for repack in (True, False)]


def machine() -> str:
    """The processor, the cores that may be used, and the revision of this repository."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    git = ["git", "describe", "--always", "--dirty"]
    revision = subprocess.run(git, cwd=heirloom_cli.ROOT, capture_output=True, text=True).stdout.strip()
    return f"{processor}, {len(os.sched_getaffinity(0))} cores; revision {revision}"
