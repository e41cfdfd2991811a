"""Records what llama.cpp answers greedily, into tests/fixtures/llama_cpp_MODEL.json.

    python bench/reference/record_llama_cpp.py smollm2 qwen [--gguf NAME=PATH]

For five prompts: their token ids and the first 16 ids that llama.cpp chooses; and 40 ids of a longer text for the
comparison of logits. Ids come from llama.cpp's session file, so nothing is tokenized twice. The commands stand in
the file that is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import heirloom_cli  # noqa: E402
import peers  # noqa: E402

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "<|im_start|>user\nName three primary colours.<|im_end|>\n<|im_start|>assistant\n",
    "Once upon a time, in a village by the sea, there lived a clockmaker who",
    "Die Hauptstadt von Österreich heißt",
]
LOGITS_TEXT = (
    "A lighthouse keeper writes down the weather every evening: wind, waves, clouds and the ships that pass. "
    "After forty years the notebooks fill a whole shelf, and students come from far away to read them and to count storms."
)
LOGITS_TOKENS = 40
GREEDY_TOKENS = 16

# llama.cpp's session file: magic, version, number of tokens, the tokens, the state.
SESSION_MAGIC = 0x6767736E


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=sorted(heirloom_cli.MODELS))
    parser.add_argument("--gguf", action="append", default=[], help="NAME=PATH, a file to use instead of the fetched one")
    options = parser.parse_args()
    files = dict(each.split("=", 1) for each in options.gguf)
    for model in options.models:
        path = Path(files[model]) if model in files else heirloom_cli.gguf_file(model)
        write_fixture(model, record(model, path))


def record(model: str, path: Path) -> dict:
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    text_ids = tokenize(path, LOGITS_TEXT)
    assert len(text_ids) >= LOGITS_TOKENS, f"the text has {len(text_ids)} tokens, too few"
    prompts = [{"text": text, "ids": tokenize(path, text), "greedy": greedy(path, text)} for text in PROMPTS]
    return {
        "model": heirloom_cli.MODELS[model],
        "sha256": sha256,
        "engine": f"llama.cpp from PyPI {peers.LLAMA_CPP_PACKAGE} {peers.LLAMA_CPP_VERSION}",
        "recorded_by": f"python bench/reference/record_llama_cpp.py {model}",
        "tokenize_command": " ".join(["llama-tokenize", *tokenize_arguments("MODEL.gguf", "PROMPT.txt")]),
        "greedy_command": " ".join(["llama-completion", *greedy_arguments("MODEL.gguf", "PROMPT.txt", "SESSION")]),
        "prompts": prompts,
        "logits": {"text": LOGITS_TEXT, "ids": text_ids[:LOGITS_TOKENS]},
    }


def tokenize_arguments(model: str, prompt: str) -> list[str]:
    return ["-m", model, "-f", prompt, "--ids", "--log-disable"]


def greedy_arguments(model: str, prompt: str, session: str) -> list[str]:
    # `-bf` keeps a newline at the end. One token more than wanted: the last one need not be in the session yet.
    length = ["-n", str(GREEDY_TOKENS + 1), "-c", "512", "--temp", "0", "-t", "1"]
    return ["-m", model, "-bf", prompt, "-no-cnv", *length, "--prompt-cache", session, "--prompt-cache-all"]


def tokenize(model: Path, text: str) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        prompt = write_prompt(folder, text)
        command = [str(peers.llama_cpp("llama-tokenize")), *tokenize_arguments(str(model), prompt)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def greedy(model: Path, text: str) -> list[int]:
    """The ids chosen after the prompt: 16, or fewer where the model ended its text."""
    with tempfile.TemporaryDirectory() as folder:
        prompt, session = write_prompt(folder, text), str(Path(folder) / "session")
        command = [str(peers.llama_cpp("llama-completion")), *greedy_arguments(str(model), prompt, session)]
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        data = Path(session).read_bytes()
    magic, _version, count = struct.unpack_from("<III", data)
    assert magic == SESSION_MAGIC, f"{session} is no session file of llama.cpp"
    ids = list(struct.unpack_from(f"<{count}i", data, 12))
    own = tokenize(model, text)
    assert ids[: len(own)] == own, f"the session does not begin with the prompt: {ids} {own}"
    return ids[len(own) :][:GREEDY_TOKENS]


def write_prompt(folder: str, text: str) -> str:
    path = Path(folder) / "prompt.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_fixture(model: str, fixture: dict) -> None:
    path = heirloom_cli.ROOT / "tests" / "fixtures" / f"llama_cpp_{model}.json"
    lines = json.dumps(fixture, ensure_ascii=False, indent=1)
    path.write_text(collapse_lists(lines) + "\n", encoding="utf-8")
    print(path.relative_to(heirloom_cli.ROOT))


def collapse_lists(text: str) -> str:
    """Each list of numbers on one line."""
    out, pending = [], None
    for line in text.splitlines():
        stripped = line.strip()
        if pending is None:
            if stripped.endswith("[") and not stripped.endswith('"prompts": ['):
                pending = line
            else:
                out.append(line)
        else:
            pending += stripped if stripped.startswith("]") else stripped + (" " if stripped.endswith(",") else "")
            if stripped.startswith("]"):
                out.append(pending)
                pending = None
    return "\n".join(out)


if __name__ == "__main__":
    main()
