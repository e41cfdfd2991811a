"""Best of N: one prompt is fed once, then N forks of its state each go their own way, in threads of their own. The forks
share the prompt's cache: no row is copied.

    python python/examples/best_of_n.py MODEL.onnx [PROMPT] [N]
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import heirloom
import numpy as np


def sample(logits: np.ndarray, rng: np.random.Generator, temperature: float) -> tuple[int, float]:
    """A token by chance, and its log-probability."""
    scaled = logits.astype(np.float64) / temperature
    log_p = scaled - np.logaddexp.reduce(scaled)
    token = int(rng.choice(len(log_p), p=np.exp(log_p) / np.exp(log_p).sum()))
    return token, float(log_p[token])


def answer(
    state: heirloom.State, logits: np.ndarray, ends: set[int], seed: int, max_tokens: int
) -> tuple[float, list[int]]:
    """One way on: the mean log-probability of its tokens, and the tokens."""
    rng = np.random.default_rng(seed)
    tokens: list[int] = []
    total = 0.0
    with state:
        while len(tokens) < max_tokens:
            token, log_p = sample(logits, rng, temperature=0.8)
            total += log_p
            if token in ends:
                break
            tokens.append(token)
            logits = run(state, [token])
    return total / max(len(tokens), 1), tokens


def run(state: heirloom.State, tokens: list[int]) -> np.ndarray:
    """The logits behind the last token."""
    feeds = {"input_ids": [tokens], "logits_to_keep": 1}
    return state.run(feeds, "logits")["logits"][0, -1]


def best_of(path: str, prompt: str, n: int = 4, max_tokens: int = 24) -> list[tuple[float, str]]:
    """The answers, best first."""
    language = heirloom.llm.load(path)
    session = heirloom.Session(path, threads=1)
    shapes = [slot.shape for slot in session.state_spec() if slot.shape]
    symbols = {dim for shape in shapes for dim in shape if isinstance(dim, str)}
    batch = {shape[0] for shape in shapes}
    state = session.make_state(session.zeros({symbol: int(symbol in batch) for symbol in symbols}))
    logits = run(state, language.encode_chat([{"role": "user", "content": prompt}]))
    ends = set(language.end_tokens)
    with ThreadPoolExecutor(n) as threads:
        ways = [threads.submit(answer, state.fork(), logits, ends, seed, max_tokens) for seed in range(n)]
        found = sorted((way.result() for way in ways), reverse=True)
    assert state.report().counts.cache_copied_bytes == 0
    return [(score, language.decode(tokens)) for score, tokens in found]


def main(path: str, prompt: str = "Name a river in one word.", n: str = "4") -> list[tuple[float, str]]:
    found = best_of(path, prompt, int(n))
    for score, text in found:
        print(f"{score:7.3f}  {text!r}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:4])
