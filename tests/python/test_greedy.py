"""Greedy tokens of real models against those recorded from llama.cpp."""

from __future__ import annotations

import json

import numpy as np
import pytest

import heirloom_cli
from test_logits import gap_of_two_best

PROMPTS = range(5)


def test_the_float_computation_and_llama_cpp_choose_the_same_tokens(model):
    """The two oracles agree, or the choice was a close one."""
    for prompt, logits in zip(model.recorded["prompts"], model.float_logits[1], strict=True):
        first = len(prompt["ids"]) - 1
        for position, chosen in enumerate(prompt["greedy"], first):
            row = logits[position]
            assert row.argmax() == chosen or gap_of_two_best(row) < 0.3, (prompt["text"], position)


@pytest.mark.parametrize("index", PROMPTS)
def test_greedy_tokens_are_those_of_llama_cpp_or_a_close_choice(model, index):
    prompt, logits = model.recorded["prompts"][index], model.float_logits[1][index]
    recorded = prompt["greedy"]
    ids = ",".join(map(str, prompt["ids"]))
    report = heirloom_cli.generate_report(
        model.onnx, "--tokens", ids, "--max-tokens", len(recorded), "--temperature", 0
    )
    ours = report["token_ids"]
    assert report["prompt_tokens"] == len(prompt["ids"])
    for step, (chosen, expected) in enumerate(zip(ours, recorded)):
        if chosen != expected:
            row = logits[len(prompt["ids"]) - 1 + step]
            gap = gap_of_two_best(row)
            assert gap < 0.3, f"step {step}: {chosen}, not {expected}; the two best are {gap:.3f} apart"
            assert chosen in np.argsort(row)[-2:], f"step {step}: {chosen} is none of the two best"
            return
    if len(ours) < len(recorded):
        assert report["stop_reason"] == "end_of_text"
        assert len(ours) == len(recorded) - 1, "only the end token itself may be missing"


def test_a_prompt_as_text_gives_the_recorded_token_ids(model):
    for prompt in model.recorded["prompts"]:
        assert json.loads(heirloom_cli.run("tokenize", model.onnx, prompt["text"])) == prompt["ids"]
