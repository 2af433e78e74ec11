"""Turn: one request while it is being answered, token by token, and TextStream: its text.

Only a bounded tail is decoded per token. Invariant: `text` grows by whole characters, `ends`
never falls, and at the end the text equals the decoding of all tokens together.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.decoding.lookup import Lookup
from sleuth.types import StopReason

Decode = Callable[[Sequence[int]], str]

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MAX_TAIL = 24
"""Tokens decoded again per step before the tail is cut."""
OVERLAP = 4
"""Tokens kept when the tail is cut, so that a tokenizer that treats a first token specially sees none."""
MAX_PENDING = 8
"""An unfinished character has at most 4 bytes; more pending tokens than this are garbage and are emitted."""


def uniforms(seed: int, count: int) -> NDArray[np.float64]:
    """`count` numbers in [0, 1); number i depends on (seed, i) alone (Philox, counter = i)."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(count)


@dataclass(slots=True)
class TextStream:
    """Tokens in, text and token-to-character ends out; knows whether a stop string has appeared."""

    decode: Decode
    stops: tuple[str, ...] = ()
    text: str = ""
    tokens: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    _tail: int = 0
    """Index of the first token that is decoded again."""
    _seen: str = ""
    """The part of the tail's decoding that is already in `text`."""
    _pending: int = 0

    def push(self, token: int) -> bool:
        """Add one token; True if it completes a stop string."""
        self.tokens.append(token)
        window = self.decode(self.tokens[self._tail :])
        before = len(self.text)
        if window.endswith(REPLACEMENT) and self._pending < MAX_PENDING:
            # An unfinished character: emitting it would put U+FFFD where a letter belongs.
            self._pending += 1
        else:
            self._pending = 0
            self.text += window[len(self._seen) :]
            self._seen = window
            self._trim()
        self.ends.append(len(self.text))
        return self._stopped(before)

    def close(self) -> None:
        """Complete text and ends after the last token; an unfinished character becomes U+FFFD."""
        whole = self.decode(self.tokens)
        if whole != self.text:
            self.ends = [min(end, len(whole)) for end in self.ends]
            self.text = whole
        if self.ends:
            self.ends[-1] = len(self.text)

    def _trim(self) -> None:
        if len(self.tokens) - self._tail > MAX_TAIL:
            self._tail = len(self.tokens) - OVERLAP
            self._seen = self.decode(self.tokens[self._tail :])

    def _stopped(self, before: int) -> bool:
        """Whether a stop string ends inside the text added since length `before`."""
        return any(stop in self.text[max(0, before - len(stop) + 1) :] for stop in self.stops if stop)


class Turn:
    """A request, what has been written for it so far, and why it ended."""

    def __init__(
        self,
        request: Request,
        sampling: Sampling,
        context_length: int,
        decode: Decode,
        eos: Collection[int] = (),
    ) -> None:
        self.context = list(request.tokens)
        self.seed = request.seed
        self.sampling = sampling
        self.cancelled = False
        """Set when nothing waits for this turn any more; the decoder then drops it."""
        room = context_length - len(self.context)
        self.limit = max(0, min(room, sampling.max_new_tokens))
        """Most new tokens."""
        self.stop: StopReason = "context" if room < 1 else ""
        """Empty until the turn has ended."""
        self._at_limit: StopReason = "context" if room < sampling.max_new_tokens else "length"
        self.lookup = Lookup(self.context)
        self._eos = eos
        self._stream = TextStream(decode, sampling.stop)
        self._on_text = request.on_text
        self._logprobs: list[float] = []
        # Drawn at once, so that no sample depends on how many others are drawn in its batch.
        self._draws = uniforms(self.seed, self.limit) if sampling.temperature else None

    @property
    def count(self) -> int:
        """Tokens written so far."""
        return len(self._logprobs)

    @property
    def tokens(self) -> list[int]:
        """The context and what has been written."""
        return self.context + self._stream.tokens

    @property
    def left(self) -> int:
        """Tokens that may still be written."""
        return self.limit - self.count

    def draws(self, count: int) -> list[float]:
        """The random numbers in [0, 1) that choose the next `count` tokens; 0 when greedy."""
        if self._draws is None:
            return [0.0] * count
        drawn: list[float] = self._draws[self.count : self.count + count].tolist()
        return drawn

    @property
    def last(self) -> int:
        return self._stream.tokens[-1]

    def take(self, token: int, logprob: float) -> None:
        """Add the next token; sets `stop` if it ends the turn."""
        self._logprobs.append(logprob)
        self.lookup.push(token)
        before = len(self._stream.text)
        stopped = self._stream.push(token)
        if self._on_text and len(self._stream.text) > before:
            self._on_text(self._stream.text[before:])
        if token in self._eos:
            self.stop = "eos"
        elif stopped:
            self.stop = "stop"
        elif self.count >= self.limit:
            self.stop = self._at_limit

    def follow(self, guess: Sequence[int], chosen: Sequence[tuple[int, float]]) -> int:
        """Take chosen (token, log-probability) pairs, the one after `guess` included, while the guess is right.

        Pair i was chosen as if the first i guessed tokens had been written. Returns how many of them have been.
        """
        right = 0
        for right, (token, logprob) in enumerate(chosen):
            self.take(token, logprob)
            if self.stop or right == len(guess) or token != guess[right]:
                break
        self.lookup.learn(len(guess), right)
        return right

    def completion(self) -> Completion:
        stream = self._stream
        stream.close()
        return Completion(
            tuple(stream.tokens), tuple(self._logprobs), stream.text, tuple(stream.ends), self.stop
        )
