"""A chat in the terminal with a language model that was imported from GGUF.

    python python/examples/chat.py MODEL.onnx [MESSAGE …]

With messages, it says them one after another and ends; without, it reads them from the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import heirloom


def talk(chat: heirloom.llm.Chat, messages: Iterable[str], max_tokens: int = 200) -> list[str]:
    """Says each message and prints the answer as it comes."""
    answers = []
    for message in messages:
        print(f"> {message}")
        answer = ""
        for piece in chat.say(message, max_tokens=max_tokens):
            print(piece, end="", flush=True)
            answer += piece
        print()
        answers.append(answer)
    return answers


def asked() -> Iterable[str]:
    while True:
        try:
            yield input("you: ")
        except EOFError:
            return


def main(model: str, *messages: str) -> list[str]:
    chat = heirloom.llm.load(model).chat(system="You answer in one sentence.")
    return talk(chat, messages or asked())


if __name__ == "__main__":
    main(*sys.argv[1:])
