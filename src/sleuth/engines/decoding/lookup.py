"""Lookup: guesses of the next tokens from earlier places of the same tokens in the same context.

An agent copies: names into queries, sentences into evidence, words into answers. Several guessed
tokens are then checked in one forward pass that costs little more than one token's (prompt lookup,
Saxena 2023; speculative decoding, Leviathan et al. 2023). A guess never changes what is written: a
token is kept only if the model's own choice, with the sample's own random number, is the same.
"""

from collections.abc import Sequence
from itertools import accumulate, repeat
from operator import mul

NGRAM = 2
"""Last tokens that must be the same at the earlier place."""
WIDTHS = (1, 2, 4, 8)
"""Numbers of guessed tokens to choose from, in addition to none."""
TRUST = 0.2
"""Weight of the latest guess in a context's running share of right ones."""


class Lookup:
    """The tokens of one context and what followed each pair of them last."""

    def __init__(self, context: Sequence[int]) -> None:
        self.share = 0.5
        """Running estimate of the probability that a guessed token is right, given those before it."""
        self._tokens: list[int] = []
        self._followers: dict[tuple[int, ...], int] = {}
        for token in context:
            self.push(token)

    def push(self, token: int) -> None:
        self._followers[tuple(self._tokens[-NGRAM:])] = len(self._tokens)
        self._tokens.append(token)

    def guess(self, most: int) -> list[int]:
        """Up to `most` tokens that may come next; none if the last tokens did not occur together before."""
        place = self._followers.get(tuple(self._tokens[-NGRAM:]))
        if place is None:
            return []
        guessed: list[int] = []
        for index in range(place, place + most):
            # Past the end, copy from the guess itself.
            beyond = index - len(self._tokens)
            guessed.append(self._tokens[index] if beyond < 0 else guessed[beyond])
        return guessed

    def learn(self, guessed: int, right: int) -> None:
        """Record that the first `right` of `guessed` tokens were right."""
        tried = min(guessed, right + 1)
        if tried:
            self.share += TRUST * (right / tried - self.share)


def best_width(
    lookups: Sequence[Lookup], guesses: Sequence[Sequence[int]], rows: int, overhead: float
) -> int:
    """How many guessed tokens a step should check: the most tokens written for the time, 0 if no guess pays off.

    A step over `rows` rows of w + 1 columns takes overhead + rows · (w + 1), in units of what one
    more token adds; a row of share p whose first tokens are guessed writes 1 + p + p² + … tokens.
    """
    gains = [
        [0.0, *accumulate(accumulate(repeat(lookup.share, len(guess)), mul))]
        for lookup, guess in zip(lookups, guesses, strict=True)
    ]

    def pace(width: int) -> float:
        written: float = len(lookups) + sum(gain[min(width, len(gain) - 1)] for gain in gains)
        return written / (overhead + rows * (width + 1))

    longest = max((len(guess) for guess in guesses), default=0)
    return max((0, *(width for width in WIDTHS if width <= longest)), key=pace)
