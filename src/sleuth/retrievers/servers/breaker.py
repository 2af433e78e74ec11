"""Circuit breaker: a server that failed several times in a row is left alone for a while.

Then one request tries it; if that fails too, the others go on being refused. Requests that were under way
together when it failed count once: they tell of one and the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


class Breaker:
    """Counts failures in a row. Threads may share it."""

    def __init__(self, failures: int, rest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`failures` in a row, 1 or more, open it for `rest_s` seconds."""
        self._most = failures
        self._rest_s = rest_s
        self._clock = clock
        self._num_failures = 0
        self._until = 0.0
        self._failed_at = float("-inf")
        self._lock = Lock()

    def refusal_s(self) -> float:
        """Seconds until the server may be asked again; 0 = ask now, which after a rest is for one caller only."""
        with self._lock:
            if self._num_failures < self._most:
                return 0.0
            left = self._until - self._clock()
            if left > 0:
                return left
            self._until = self._clock() + self._rest_s  # the others wait for what this trial finds
            return 0.0

    def succeeded(self) -> None:
        """The server answered."""
        with self._lock:
            self._num_failures = 0

    def now(self) -> float:
        """The breaker's time, in seconds."""
        return self._clock()

    def failed(self, asked_at: float) -> None:
        """The server did not answer what it was asked at a time of `now`, or said that it cannot."""
        with self._lock:
            if asked_at < self._failed_at:
                return
            self._failed_at = self._clock()
            self._num_failures += 1
            if self._num_failures >= self._most:
                self._until = self._clock() + self._rest_s
