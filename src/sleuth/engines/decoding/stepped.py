"""SteppedEngine: an Engine over a library that batches, keeps prefixes and samples by itself.

The library makes one step of all its turns at a time; Turn decides where a turn ends, as for every engine.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np

from sleuth.concurrency import Tick
from sleuth.engines.base import Completion, Engine, Request, Sampling
from sleuth.engines.decoding.lanes import Lanes, Ticket
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.errors import EngineError

Written = tuple[str, Iterable[tuple[int, float]]]
"""A turn's name and its new tokens, each with its log-probability."""


class SteppedDecoder(ABC):
    """Turns through a library's scheduler; see lanes.Decoder."""

    def __init__(self) -> None:
        self._open: dict[str, Ticket] = {}
        self._count = 0

    @abstractmethod
    def wake(self) -> None:
        """Make the library ready, where its memory was freed."""

    @abstractmethod
    def begin(self, name: str, turn: Ticket) -> None:
        """Add a turn."""

    @abstractmethod
    def step(self) -> Iterable[Written]:
        """One step of all turns."""

    @abstractmethod
    def end(self, names: Sequence[str]) -> None:
        """Free the places of these turns, where the library has not done so itself."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the cached prefixes, once no turn is open."""

    def run(self, take: Callable[[], Sequence[Any]], give: Callable[[Sequence[Any]], None]) -> None:
        """Decode until `take` returns no more turns; a turn that nobody awaits is aborted."""
        self.wake()
        while True:
            for turn in take():
                self._count += 1
                self.begin(str(self._count), turn)
                self._open[str(self._count)] = turn
            give(self._close([name for name, turn in self._open.items() if turn.cancelled]))
            if not self._open:
                return
            stopped = [name for name, tokens in self.step() if self._takes_last(self._open[name], tokens)]
            give(self._close(stopped))

    def clear(self) -> None:
        """Abort what is open and drop the cached prefixes."""
        try:
            self._close(list(self._open))
        finally:
            self._open.clear()
            self.forget()

    def _close(self, names: Sequence[str]) -> list[Ticket]:
        if names:
            self.end(names)
        return [self._open.pop(name) for name in names]

    @staticmethod
    def _takes_last(turn: Ticket, tokens: Iterable[tuple[int, float]]) -> bool:
        """Add these tokens to a turn; returns whether one of them ends it."""
        for token, logprob in tokens:
            turn.take(token, logprob)
            if turn.stop:
                return True
        return False


class SteppedEngine(Engine):
    """Continues token contexts with a library that holds a copy of the weights."""

    has_own_arithmetic = True
    tokenizer: HFTokenizer

    def _start(self, decoder: SteppedDecoder, vocabulary: int, eos: Collection[int]) -> None:
        """Start sampling; called once the model is loaded."""
        self._vocabulary = vocabulary
        self._eos = eos
        self._lanes = Lanes([decoder], 0, nullcontext, nullcontext)
        self._tick: Tick[Ticket] = Tick(self._lanes.submit)

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine. Raises EngineError for a token the model does not have."""
        tokens = np.asarray(request.tokens, dtype=np.int64)
        if not tokens.size:
            raise EngineError("cannot continue an empty context")
        wrong = tokens[(tokens < 0) | (tokens >= self._vocabulary)]
        if wrong.size:
            raise EngineError(f"token id {wrong[0]} is not in the model's vocabulary of {self._vocabulary}")
        loop, decode = asyncio.get_running_loop(), self.tokenizer.decode
        turn = Ticket(request, sampling, self.context_length, decode, self._eos, loop=loop)
        if turn.stop:
            return turn.completion()
        self._tick.add(turn)
        try:
            done = await cast("asyncio.Future[Completion]", turn.future)
        except asyncio.CancelledError:
            turn.cancelled = True
            raise
        if self._has_logprobs(sampling):
            return done
        return Completion(done.tokens, (), done.text, done.ends, done.stop)

    def _has_logprobs(self, sampling: Sampling) -> bool:
        """Whether the library's log-probabilities are those of the distribution that Completion names."""
        return not sampling.temperature or sampling.top_p == 1
