"""Language models: prompts in, tokens out, over a state that the model file declares.

>>> model = heirloom.llm.load("smollm2.onnx")                       # doctest: +SKIP
>>> for token in model.generate("Why is the sky blue?", max_tokens=64):   # doctest: +SKIP
...     print(token, end="", flush=True)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _html, _native
from .errors import BusyError, LanguageError

__all__ = ["Chat", "Conversation", "Generation", "GenerationReport", "LanguageModel", "Token", "load"]


class Token(str):
    """The text that is complete now that a token has come: whole characters, sometimes none.

    Attributes:
        id: the token's number in the vocabulary.
    """

    id: int

    def __new__(cls, text: str, id: int) -> Token:
        made = super().__new__(cls, text)
        made.id = id
        return made


@dataclass(frozen=True)
class GenerationReport:
    """What a generation took.

    Attributes:
        prompt_tokens, generated_tokens: how many were fed and generated.
        prompt_seconds: until the prompt's logits were there.
        generated_seconds: of the calls behind the prompt.
        steps: calls behind the prompt.
        appended_bytes_per_token: bytes that each step appended to the caches; None where they differ.
        stop: ``end_of_text``, ``length``, ``context_full``, ``cancelled``, or None where it was left before its end.
        counts: what the calls did with memory.
    """

    prompt_tokens: int
    generated_tokens: int
    prompt_seconds: float
    generated_seconds: float
    steps: int
    appended_bytes_per_token: int | None
    stop: str | None
    counts: Any

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second, the prompt's time left out."""
        return self.steps / self.generated_seconds if self.generated_seconds > 0 else 0.0


class Generation(Iterator[Token]):
    """Generates as it is advanced. Leaving it (``close``, or dropping it) stops; the conversation keeps what it has seen.

    Attributes:
        text: all text so far.
        ids: all tokens so far.
        report: what it took; None while it goes on.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation: Conversation | None = conversation
        self.text = ""
        self.ids: list[int] = []
        self.report: GenerationReport | None = None

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> Token:
        if self._conversation is None:
            raise StopIteration
        try:
            token = self._conversation._native.advance()
        except BaseException:
            self.close()
            raise
        if token is None:
            rest = self.close()
            if rest:
                return Token(rest, self.ids[-1] if self.ids else -1)
            raise StopIteration
        id, text = token
        self.ids.append(id)
        self.text += text
        return Token(text, id)

    def close(self) -> str:
        """Stops. Gives the text that was held back because its character was not complete."""
        conversation, self._conversation = self._conversation, None
        ended = None if conversation is None else conversation._native.end()
        if ended is None:
            return ""
        rest, report = ended
        self.report = GenerationReport(**report)
        self.text += rest
        return rest

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        how = "going on" if self.report is None else self.report.stop or "left"
        return f"heirloom.llm.Generation({len(self.ids)} tokens, {how})"


class Conversation:
    """A state of a language model and the tokens that it has seen. Made by `LanguageModel.conversation`."""

    def __init__(self, model: LanguageModel, native: _native.Conversation) -> None:
        self.model = model
        self._native = native

    @property
    def seen(self) -> list[int]:
        """The tokens that the state has seen."""
        return self._native.seen

    def feed(self, tokens: Sequence[int], *, all: bool = False, timeout: float | None = None) -> Any:
        """Feeds tokens.

        Returns:
            FLOAT logits behind the last token, ``[vocabulary]``; with ``all`` behind each, ``[tokens, vocabulary]``.

        Raises:
            LanguageError: there are none (``empty_prompt``), or more than the context holds (``prompt_too_long``).
        """
        return self._native.feed(list(tokens), all, timeout)

    def truncate(self, tokens: int) -> None:
        """Forgets all but the first tokens. Nothing is copied."""
        self._native.truncate(tokens)

    def rewind_to(self, tokens: Sequence[int]) -> list[int]:
        """Keeps what the state has seen of these tokens; gives those that are still to be fed, at least one."""
        return self._native.rewind_to(list(tokens))

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 40,
        top_p: float = 0.95,
        seed: int = 0,
        ignore_end: bool = False,
    ) -> Generation:
        """Feeds the prompt, then generates tokens as the iterator is advanced. Ctrl-C stops between tokens and while the
        prompt is fed.

        Args:
            prompt: text, which is fed as it is, or token ids.
            max_tokens: the most tokens.
            temperature: 0 takes the most likely token each time.
            top_k, top_p: of the likeliest ``top_k`` tokens, the smallest set whose probability reaches ``top_p``.
            seed: where chance begins: the same seed, prompt and model give the same text.
            ignore_end: goes on behind the tokens that end a text.
        """
        ids = self.model.encode(prompt) if isinstance(prompt, str) else list(prompt)
        self._native.begin(ids, max_tokens, temperature, top_k, top_p, seed, ignore_end)
        return Generation(self)

    def __repr__(self) -> str:
        try:
            return f"heirloom.llm.Conversation({len(self.seen)} tokens seen of {self.model.context})"
        except BusyError:
            return "heirloom.llm.Conversation(generating)"


class Chat:
    """A chat: messages and the conversation that has seen them. Only what is new is fed.

    >>> chat = model.chat(system="You are brief.")                     # doctest: +SKIP
    >>> for piece in chat.say("Name a river."): print(piece, end="")   # doctest: +SKIP
    """

    def __init__(self, model: LanguageModel, system: str | None) -> None:
        self.model = model
        self.messages: list[dict[str, str]] = [] if system is None else [{"role": "system", "content": system}]
        self._conversation = model.conversation()

    def say(self, content: str, **choices: Any) -> Iterator[Token]:
        """Says something; gives the answer's tokens as they come. The answer joins ``messages`` when it has come whole;
        where the iterator is left before, the chat goes on as if nothing had been said.

        Args:
            content: the user's message.
            choices: as of `Conversation.generate`.
        """
        messages = [*self.messages, {"role": "user", "content": content}]
        fresh = self._conversation.rewind_to(self.model.encode_chat(messages))
        with self._conversation.generate(fresh, **choices) as generation:
            yield from generation
            self.messages = [*messages, {"role": "assistant", "content": generation.text}]

    def __repr__(self) -> str:
        return f"heirloom.llm.Chat({len(self.messages)} messages, {self._conversation!r})"


class LanguageModel:
    """A language model with its tokenizer and chat template. Any number of conversations may share it."""

    def __init__(self, native: _native.LanguageModel, path: str) -> None:
        self._native = native
        self.path = path

    @property
    def context(self) -> int:
        """Tokens that a conversation can hold."""
        return self._native.context

    @property
    def has_chat_template(self) -> bool:
        """Whether the model says how a conversation is written."""
        return self._native.has_chat_template

    @property
    def end_tokens(self) -> list[int]:
        """The tokens that end a text."""
        return list(self._native.end_tokens)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, special tokens recognized."""
        return self._native.encode(text)

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of tokens."""
        return self._native.decode(list(ids), skip_special)

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The tokens of messages (``role`` and ``content``) up to where the model's answer begins.

        Raises:
            LanguageError: the model has no chat template (``no_template``).
        """
        return self._native.encode_chat([(message["role"], message["content"]) for message in messages])

    def conversation(self) -> Conversation:
        """A conversation with nothing said yet."""
        return Conversation(self, self._native.conversation())

    def generate(self, prompt: str | Sequence[int], **choices: Any) -> Generation:
        """Answers one prompt in a conversation of its own. A text is the message of a user where the model has a chat
        template. Choices are those of `Conversation.generate`."""
        ids = self._native.encode_prompt(prompt) if isinstance(prompt, str) else list(prompt)
        return self.conversation().generate(ids, **choices)

    def chat(self, *, system: str | None = None) -> Chat:
        """Begins a chat.

        Raises:
            LanguageError: the model has no chat template (``no_template``).
        """
        if not self.has_chat_template:
            error = LanguageError("the model has no chat template: use `generate` with a prompt of its own form")
            error.kind = "no_template"
            raise error
        return Chat(self, system)

    def __repr__(self) -> str:
        mapped, private = self._native.weight_bytes
        weights = f"weights {_html.size(mapped)} mapped, {_html.size(private)} private"
        return f"heirloom.llm.LanguageModel({self.path!r}, context {self.context}, {weights})"


def load(
    path: str | os.PathLike[str], *, threads: int | None = None, context: int | None = None
) -> LanguageModel:
    """Opens a model that takes ``input_ids`` and gives ``logits``, with the text that its metadata names.

    Args:
        path: the ``.onnx``; make one of a GGUF file with `heirloom.gguf.import_model`.
        threads: None takes all processors that the process may use.
        context: tokens that a conversation can hold; None takes the model's own. Memory is taken as tokens come.

    Raises:
        ModelError, SessionError: as `heirloom.Session`.
        LanguageError: the model is none of language, or its tokenizer cannot be read.
    """
    return LanguageModel(_native.LanguageModel.open(path, threads, context), os.fspath(path))
