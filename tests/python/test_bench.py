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


def test_a_roofline_accounts_for_every_weight_and_for_the_whole_token(smollm2):
    options = ["--roofline", "--prompt-tokens", 16, "--generate", 3, "--depth", 4]
    found = json.loads(heirloom_cli.run("bench", smollm2.onnx, *options, "--json"))
    decode, prefill = found["decode"], found["prefill"]
    groups = {row["group"]: row for row in decode["groups"]}
    assert list(groups) == ["projections", "attention", "output head", "rest", "between nodes"]
    # 30 layers of seven products, all Q4_1: 576 wide, 9 heads of 64 that share 3, 1,536 inside; and the head in Q8_0.
    layer = 2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576
    assert groups["projections"]["bytes"] == 30 * layer * 20 // 32
    assert groups["projections"]["operations"] == 2 * 30 * layer
    assert groups["output head"]["bytes"] == 49152 * 576 * 34 // 32
    assert sum(row["nodes"] for row in decode["products"]) == 30 * 7 + 1
    assert sum(row["bytes"] for row in decode["products"]) == found["weights_bytes"]
    # Of each phase the groups are all of its time; medians of three tokens' groups are not quite their sum's median.
    assert sum(row["ms"] for row in prefill["groups"]) == pytest.approx(prefill["ms"], rel=1e-6)
    assert sum(row["ms"] for row in decode["groups"]) == pytest.approx(decode["ms_per_token"], rel=0.5)
    # A token reads its weights and does more: no faster than the pure read, but for noise.
    assert 0 < decode["fraction_of_pure_read"] < 1.5
    table = heirloom_cli.run("bench", smollm2.onnx, *options)
    assert "a token behind 4" in table and "output head" in table and "q8_0 49152 x 576" in table
