"""Speech in a stream: Silero VAD over chunks of 32 ms, its recurrent state kept by the model.

    python python/examples/silero_vad.py MODEL [WAV]

MODEL is a `silero_vad*.onnx` as the `silero-vad` package ships it. Its file says nothing of state: `bind` writes into the
model that its output `stateN` is its next `state`, and from then on nobody carries it by hand.
"""

from __future__ import annotations

import sys
import wave
from collections.abc import Iterator

import heirloom
import numpy as np

RATE, CHUNK, CONTEXT = 16_000, 512, 64


def stateful(path: str) -> heirloom.Model:
    """The model with its state bound."""
    return heirloom.load(path).bind(state="stateN")


def probabilities(session: heirloom.Session, audio: np.ndarray) -> Iterator[float]:
    """The probability of speech in each whole chunk of FLOAT samples. Each call also sees the last samples of the chunk
    before: the model was trained so."""
    window = np.zeros((1, CONTEXT + CHUNK), np.float32)
    rate = np.array(RATE, np.int64)
    with session.make_state(session.zeros(batch=1)) as state:
        for start in range(0, len(audio) - CHUNK + 1, CHUNK):
            window[:, :CONTEXT] = window[:, -CONTEXT:].copy()
            window[:, CONTEXT:] = audio[start : start + CHUNK]
            yield float(state.run({"input": window, "sr": rate}, "output")["output"][0, 0])


def read_wav(path: str) -> np.ndarray:
    """Samples of a 16-bit mono file of 16 kHz."""
    with wave.open(path) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (RATE, 2, 1)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def made_up() -> np.ndarray:
    """A second of silence, then one of a voice-like buzz."""
    t = np.arange(RATE) / RATE
    buzz = sum(np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 20)) * (0.3 + 0.3 * np.sin(2 * np.pi * 4 * t))
    return np.concatenate([np.zeros(RATE), 0.3 * buzz]).astype(np.float32)


def main(model: str, wav: str | None = None) -> list[float]:
    session = heirloom.Session(stateful(model), threads=1)
    audio = made_up() if wav is None else read_wav(wav)
    found = list(probabilities(session, audio))
    for at, probability in enumerate(found):
        print(f"{at * CHUNK / RATE:6.2f} s  {probability:.3f}  {'#' * round(40 * probability)}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:3])
