"""The program as a user meets it: reports, and what it says of bad input."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import heirloom_cli

REPORT_KEYS = {
    "text",
    "token_ids",
    "prompt_tokens",
    "generated_tokens",
    "prompt_tokens_per_s",
    "generated_tokens_per_s",
    "weights_mapped_bytes",
    "state_retained_bytes",
    "state_copied_bytes",
    "state_appended_bytes_per_token",
    "steady_allocations_per_token",
    "peak_private_bytes",
    "stop_reason",
    "isa",
    "threads",
}
MIB = 1 << 20


def attempt(*arguments: object) -> subprocess.CompletedProcess:
    """A run that may fail."""
    command = [str(heirloom_cli.binary()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


def refused(*arguments: object) -> str:
    """What the program says of input that it must refuse: an error, and no panic."""
    done = attempt(*arguments)
    assert done.returncode not in (0, 101) and done.returncode > 0, done
    assert "panicked" not in done.stderr
    assert done.stderr.strip(), "an error says something"
    return done.stderr


def test_each_token_is_a_line_and_the_report_ends_the_output(smollm2):
    arguments = ["generate", smollm2.onnx, "--prompt", "Say hello.", "--max-tokens", 8, "--temperature", 0, "--json"]
    *tokens, last = map(json.loads, heirloom_cli.run(*arguments).splitlines())
    report = last["report"]
    assert REPORT_KEYS <= set(report)
    assert len(tokens) == report["generated_tokens"] == len(report["token_ids"]) > 0
    assert report["state_copied_bytes"] == 0
    # K and V of 30 layers, 3 heads of width 64, float16.
    assert report["state_appended_bytes_per_token"] == 2 * 30 * 3 * 64 * 2
    assert report["weights_mapped_bytes"] <= os.path.getsize(smollm2.gguf)
    assert report["stop_reason"] in {"end_of_text", "length"}


# proves: Z1, K1
def test_two_thousand_tokens_grow_memory_by_what_is_appended(smollm2):
    arguments = ["--tokens", "504,3575", "--temperature", 0, "--ignore-eos", "--max-tokens"]
    short, long = (heirloom_cli.generate_report(smollm2.onnx, *arguments, count) for count in (500, 2000))
    for report, count in ((short, 500), (long, 2000)):
        assert report["generated_tokens"] == count
        assert report["stop_reason"] == "length"
        assert report["state_copied_bytes"] == 0
        assert report["state_appended_bytes_per_token"] == 2 * 30 * 3 * 64 * 2
    assert long["state_reserved_bytes"] == short["state_reserved_bytes"], "the reserve is made once"
    assert long["steady_allocations_per_token"] == short["steady_allocations_per_token"] == 0
    appended = long["state_retained_bytes"] - short["state_retained_bytes"]
    assert appended == 1500 * long["state_appended_bytes_per_token"]
    grown = long["peak_private_bytes"] - short["peak_private_bytes"]
    assert abs(grown - appended) <= 0.02 * appended, f"{grown} bytes for {appended} appended"


def test_private_memory_of_qwen_stays_small(qwen):
    report = heirloom_cli.generate_report(qwen.onnx, "--prompt", "Say hello.", "--max-tokens", 8, "--temperature", 0)
    assert report["peak_private_bytes"] < 200 * MIB


def test_a_truncated_gguf_is_refused_by_name(smollm2, tmp_path):
    path = tmp_path / "short.gguf"
    with open(smollm2.gguf, "rb") as whole:
        path.write_bytes(whole.read(50 * MIB))
    assert "short.gguf" in refused("import", path)
    assert [each.name for each in tmp_path.iterdir()] == ["short.gguf"], "nothing is written"


@pytest.mark.parametrize("length", [0, 3, 4, 23, 24, 1000])
def test_a_gguf_cut_in_its_header_is_refused(smollm2, tmp_path, length):
    path = tmp_path / "header.gguf"
    with open(smollm2.gguf, "rb") as whole:
        path.write_bytes(whole.read(length))
    assert "header.gguf" in refused("import", path)


def test_an_unknown_tensor_type_is_refused_by_number(smollm2, tmp_path):
    path = tmp_path / "odd.gguf"
    shutil.copyfile(smollm2.gguf, path)
    name = b"blk.0.attn_k.weight"
    with open(path, "r+b") as file:
        head = file.read(8 * MIB)
        # Behind the name: the number of dimensions (u32), the dimensions (u64 each), the type (u32).
        at = head.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)
        dimensions = struct.unpack_from("<I", head, at)[0]
        file.seek(at + 4 + 8 * dimensions)
        file.write(struct.pack("<I", 4321))
    message = refused("import", path)
    assert "4321" in message and "odd.gguf" in message


def test_an_overlay_without_its_gguf_says_what_is_missing(smollm2, tmp_path):
    lonely = tmp_path / "lonely.onnx"
    shutil.copyfile(smollm2.onnx, lonely)
    message = refused("generate", lonely, "--prompt", "x", "--max-tokens", 1)
    assert smollm2.gguf.name in message


def test_a_damaged_overlay_is_refused(smollm2, tmp_path):
    data = smollm2.onnx.read_bytes()
    shutil.copyfile(smollm2.gguf, tmp_path / smollm2.gguf.name)
    random = np.random.default_rng(5)
    for number in range(8):
        path = tmp_path / f"damaged{number}.onnx"
        path.write_bytes(data[: int(random.integers(1, len(data) - 1))])
        assert path.name in refused("verify", path)


def test_a_prompt_longer_than_the_context_is_refused(smollm2):
    message = refused("generate", smollm2.onnx, "--prompt", "word " * 9000, "--max-tokens", 1)
    assert "8192" in message


def test_a_file_that_is_not_there_is_named(tmp_path):
    for command in ["inspect", "verify", "import"]:
        assert "nowhere" in refused(command, tmp_path / "nowhere")
    assert refused("generate", tmp_path / "nowhere.onnx", "--prompt", "x")


def test_verify_and_inspect_accept_the_real_models(model):
    heirloom_cli.run("verify", model.onnx)
    assert "past_key_values.0.key" in heirloom_cli.run("inspect", model.onnx)


@pytest.mark.parametrize("option", ["--inline", "--external"])
def test_a_contained_import_needs_no_gguf_and_says_the_same(smollm2, tmp_path, option):
    model = tmp_path / "own.onnx"
    heirloom_cli.run("import", smollm2.gguf, option, "--output", model)
    assert (tmp_path / "own.onnx.data").exists() == (option == "--external")
    question = ["--prompt", "Name a colour. One word.", "--temperature", 0, "--max-tokens", 24]
    own, overlay = (heirloom_cli.generate_report(path, *question) for path in (model, smollm2.onnx))
    for key in ["prompt_tokens", "token_ids", "text", "stop_reason"]:
        assert own[key] == overlay[key], key
    assert own["stop_reason"] == "end_of_text"


def test_importing_again_leaves_the_gguf_untouched(smollm2):
    before = os.stat(smollm2.gguf)
    assert Path(heirloom_cli.overlay(smollm2.gguf)) == smollm2.onnx
    after = os.stat(smollm2.gguf)
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
