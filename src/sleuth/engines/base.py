"""Engine: token contexts in, tokens out. The only interface between episodes and models."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Protocol

from msgspec import Meta

from sleuth.checked import Checked, NonNegativeFloat, Positive
from sleuth.concurrency import run
from sleuth.types import StopReason


class Message(NamedTuple):
    """One chat turn: role is "system", "user" or "assistant"; or "text", a whole prompt without a chat template."""

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
    on_text: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    """Called with each piece of text as it is written, in any thread, where the engine can."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Tokens and text that the model wrote."""

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
    """Why this request was refused, such as an endpoint's content filter; the other fields are then empty."""


class Tokenizer(Protocol):
    """Functions an engine needs from its model's tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text; control tokens spelled out in it stay plain text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special tokens left out."""

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """The model's chat prompt for these turns, ending where the assistant starts to write."""


class Engine(ABC):
    """A model that continues token contexts; concurrent calls share its batch."""

    name: str
    """Model name or path, for result files."""
    tokenizer: Tokenizer
    context_length: int
    """Most tokens the model can hold, prompt and response together."""
    has_own_arithmetic = False
    """Whether its log-probabilities differ from the trainer's for the same weights, which a loss corrects."""

    @abstractmethod
    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context. Cancelling the call frees its place in the batch.

        A context with no room for a single token gives an empty completion with stop "context".
        Raises EngineError if the model cannot be reached.
        """

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every context, from plain code; completion i belongs to request i."""

        async def all_of_them() -> list[Completion]:
            return await asyncio.gather(*(self.sample(request, sampling) for request in requests))

        return run(all_of_them())

    def sync(self, policy: Any) -> None:  # noqa: B027 - most engines serve fixed weights
        """Load the policy's current weights; nothing computed with older weights is used again.

        Call it before sampling from a policy that may have changed: equal weights cost nothing.
        """

    def release(self) -> None:  # noqa: B027 - most engines hold no memory here
        """Free the memory of cached keys and values, such as before an update."""

    def fingerprint(self) -> str:
        """Hash of the weights, which differs for other weights of the same name; "" where they cannot be seen."""
        return ""

    def describe(self) -> dict[str, str]:
        """How the model is run, for result files: engine, arithmetic, context length."""
        return {"engine": type(self).__name__, "context_length": str(self.context_length)}
