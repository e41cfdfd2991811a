"""The benchmarks themselves: what they print is computed from what they measured, and they run."""

from __future__ import annotations

import json

import pytest

import compare
import heirloom_cli
from engines import Task


class Fixed:
    """An engine with the speeds that it is told."""

    def __init__(self, name: str, speeds: list[float]):
        self.name, self.speeds = name, iter(speeds)

    def tokens_per_second(self, task: Task) -> float:
        return next(self.speeds)


def test_the_ratio_is_taken_round_by_round_against_the_fastest(capsys):
    engines = [Fixed("ours", [20, 30, 40]), Fixed("slow", [5, 5, 5]), Fixed("fast", [10, 10, 10])]
    assert compare.compare(engines, Task(generate=1), rounds=3) == 3
    out = capsys.readouterr().out
    assert "against the best of them (fast): 3.00 (2.00–4.00)" in out


def test_a_task_times_one_thing():
    with pytest.raises(AssertionError):
        Task(prompt=1, generate=1)
    with pytest.raises(AssertionError):
        Task()


def test_our_program_measures_itself(smollm2):
    sizes = ["--prompt-tokens", 16, "--generate", 4, "--depth", 8, "--threads", 1]
    result = json.loads(heirloom_cli.run("bench", smollm2.onnx, *sizes, "--json"))
    assert result["prefill_tokens_per_s"] > 0
    assert result["decode_tokens_per_s"] > 0
    assert result["threads"] == 1


# proves: N2
def test_states_side_by_side_report_latency_memory_and_counters_apart(smollm2):
    options = ["--states", "1,3", "--depth", 4, "--generate", 6]
    rows = json.loads(heirloom_cli.run("bench", smollm2.onnx, *options, "--json"))
    assert [row["states"] for row in rows] == [1, 3]
    for row in rows:
        per_token, size = row["per_token"], row["bytes"]
        assert per_token["state_copied_bytes"] == 0 and per_token["cache_copied_bytes"] == 0
        # 11 rows of each cache: 4 before, one outside the clock, 6 timed.
        assert size["state_retained"] == per_token["appended_bytes"] * 11 * row["states"]
        assert size["state_reserved"] >= size["state_retained"]
        assert size["scratch"] > 0 and size["peak_resident"] >= size["private"] > 0
        times = row["per_token_us"]
        assert times["decoding"] == 0 and times["inference"] > times["state_management"] >= 0
        assert 0 < row["latency_ms"]["median"] <= row["latency_ms"]["p90"] <= row["latency_ms"]["max"]
    assert rows[0]["per_token"]["appended_bytes"] == rows[1]["per_token"]["appended_bytes"]
    assert rows[1]["bytes"]["state_retained"] == 3 * rows[0]["bytes"]["state_retained"]
    assert "3 states:" in heirloom_cli.run("bench", smollm2.onnx, *options)
