"""When to stop before the last step: a signal, or a time budget. Both are asked, never sprung.

A signal only sets a flag, because an exception in the middle of an optimiser step would leave
half of the weights updated.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType, TracebackType
from typing import Any

Stop = Callable[[], bool]
"""Whether to stop; asked often, so it must be quick."""


class Interrupts:
    """While open, the first Ctrl-C or SIGTERM makes calls return True; a second one acts as usual."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        """Whether someone asked to stop."""
        return self._asked

    def __enter__(self) -> Interrupts:
        # Python delivers signals to the main thread only; elsewhere the caller's own `stop` must do.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def asked_to_stop(stop: Stop | None) -> AbstractContextManager[Stop]:
    """The caller's own `stop`, or Ctrl-C and SIGTERM if there is none.

    Never both: signals caught here would be lost to a caller who waits for them.
    """
    return Interrupts() if stop is None else nullcontext(stop)


class Budget:
    """Wall time for one call. Ends before a step that would probably overrun it."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._start = self._lap = time.monotonic()
        self._longest = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._start

    def lap(self) -> None:
        """A step ended."""
        now = time.monotonic()
        self._longest = max(self._longest, now - self._lap)
        self._lap = now

    def is_spent(self) -> bool:
        """Whether one more step as long as the longest so far would end too late."""
        return self._seconds is not None and self.elapsed_s + self._longest > self._seconds
