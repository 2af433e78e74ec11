"""Which passage ids came before, in little memory."""

from __future__ import annotations

from hashlib import blake2b

_TOO_LONG = 16
"""Digits; numbers are only counted along below."""


class SeenIds:
    """Ids of a stream. Wikipedia's 21 million ids, which count up, take no memory at all.

    Other ids are kept as 64-bit hashes: two different ids of n share one with probability n²/2⁶⁵.
    """

    def __init__(self) -> None:
        self._start = -1
        self._next = -1
        self._expected: str | None = None
        """The number that comes next, as text."""
        self._others: set[int] = set()

    def add(self, identity: str) -> bool:
        """Whether the id is new."""
        if identity == self._expected and not self._others:
            self._count_on()
            return True
        number = (
            int(identity) if identity.isdecimal() and identity.isascii() and len(identity) < _TOO_LONG else -1
        )
        if number >= 0 and str(number) == identity:
            if self._start < 0:
                self._start = self._next = number
            if self._start <= number < self._next:
                return False
            if number == self._next:
                self._count_on()
                return not self._others or _hash(identity) not in self._others
        known = len(self._others)
        self._others.add(_hash(identity))
        return len(self._others) > known

    def _count_on(self) -> None:
        self._next += 1
        expected = str(self._next)
        self._expected = expected if len(expected) < _TOO_LONG else None


def _hash(identity: str) -> int:
    return int.from_bytes(
        blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
    )
