"""Engine: token contexts in, tokens out. The only door between episodes and models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from msgspec import Meta

from sleuth.checked import Checked, NonNegativeFloat, Positive
from sleuth.types import StopReason


class Message(NamedTuple):
    """One chat turn: role is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling(Checked):
    """How to sample one turn."""

    max_new_tokens: Positive = 256
    temperature: NonNegativeFloat = 1.0
    """0 is greedy."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    stop: tuple[str, ...] = ()
    """Generation ends with the token that completes one of these strings; that token is kept whole."""


@dataclass(frozen=True, slots=True)
class Request:
    """One context to continue."""

    tokens: Sequence[int]
    """The whole context so far; an engine may recognise a prefix it has already computed."""
    seed: int = 0
    """Fixes this sample whatever else is in the batch and in whatever order."""
    messages: tuple[Message, ...] = ()
    """The same context as chat turns, for endpoints that accept nothing else."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote."""

    tokens: tuple[int, ...]
    """As sampled; an end-of-sequence token is kept, since the model chose it."""
    logprobs: tuple[float, ...]
    """log π(token | context) at the sampling temperature (at 1.0 when greedy); empty if the endpoint gives none."""
    text: str
    """Decoded tokens, special tokens left out."""
    ends: tuple[int, ...]
    """len(text) after each token."""
    stop: StopReason
    fault: str = ""
    """Why nobody would write this one, such as an endpoint's content filter; the rest is then empty."""


Reply = Callable[[Sequence[tuple[int, Completion]]], Sequence[tuple[int, Request]]]
"""Completions that are ready, by key → further requests, by key."""


class Tokenizer(Protocol):
    """What an engine needs from its model's tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text; control tokens spelled out in it stay plain text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special tokens left out."""

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """The model's chat prompt for these turns, ending where the assistant starts to write."""


class Engine(ABC):
    """A model that continues token contexts."""

    name: str
    """What to record in a result file: model name or path."""
    tokenizer: Tokenizer
    context_length: int
    """Most tokens the model can hold, prompt and response together."""

    @abstractmethod
    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every context once; result i belongs to request i.

        A context with no room for a single token gives an empty completion with stop "context".
        Raises EngineError if the model cannot be reached.
        """

    def converse(self, requests: Sequence[tuple[int, Request]], sampling: Sampling, reply: Reply) -> None:
        """Continue contexts given with a key each, until `reply` has nothing more to ask.

        `reply` is given completions with their keys whenever some are ready, in any order, and
        returns the requests to go on with, such as the next turns of the same episodes. An engine
        that can lets those join while others are still being written; this one waits for all.
        """
        asked = list(requests)
        while asked:
            completions = self.generate([request for _, request in asked], sampling)
            asked = list(reply([(key, done) for (key, _), done in zip(asked, completions, strict=True)]))

    def fingerprint(self) -> str:
        """What tells these weights from others of the same name; "" where they cannot be seen."""
        return ""

    def describe(self) -> dict[str, str]:
        """What a result should say of how this model was run: engine, arithmetic, room."""
        return {"engine": type(self).__name__, "context_length": str(self.context_length)}

    def refresh(self) -> None:  # noqa: B027 - most engines hold nothing to forget
        """Forget everything computed with old weights; call after each update."""
