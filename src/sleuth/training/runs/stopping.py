"""When to stop before the last step: a signal, or a time budget. Both are polled and never interrupt a step.

A signal only sets a flag, because an exception in the middle of an optimiser step would leave
half of the weights updated.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Stop = Callable[[], bool]
"""Whether to stop; called often, so it must be quick."""


@contextmanager
def asked_to_stop(stop: Stop | None = None) -> Iterator[Stop]:
    """The caller's own `stop`; without one, a function that is true after Ctrl-C or SIGTERM.

    A second signal acts as usual. Never both: a signal caught here would be lost to a caller
    who waits for it.
    """
    # Python delivers signals to the main thread only; elsewhere the caller's own `stop` must do.
    if stop is not None or threading.current_thread() is not threading.main_thread():
        yield stop or (lambda: False)
        return
    asked = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        restore()

    for number in before:
        signal.signal(number, ask)
    try:
        yield asked.is_set
    finally:
        restore()


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
        now = time.monotonic()
        self._longest = max(self._longest, now - self._lap)
        self._lap = now

    def restart_lap(self) -> None:
        """Let the running step begin now: what came before it happens once, and forecasts no other step."""
        self._lap = time.monotonic()

    def is_spent(self) -> bool:
        """Whether one more step as long as the longest so far would end too late."""
        return self._seconds is not None and self.elapsed_s + self._longest > self._seconds
