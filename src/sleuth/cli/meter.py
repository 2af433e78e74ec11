"""Progress of a long count on standard error: a bar on a terminal, a line now and then in a log."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sleuth.cli.output import warn
from sleuth.text import clock

SECONDS_BETWEEN_LINES = 30.0


class Meter:
    """Count of `unit`s with its rate and, if a `total` is expected (not 0), the time left."""

    def __init__(self, unit: str, total: int = 0, *, silent: bool = False) -> None:
        console = Console(stderr=True)
        self._unit, self._total = unit, total
        self._last = (time.monotonic(), 0)
        self._is_log = not (silent or console.is_terminal)
        columns = (TextColumn("{task.description}"), BarColumn())
        hidden = silent or self._is_log
        self._bar = Progress(*columns, console=console, disable=hidden, transient=True)
        self._task = self._bar.add_task(unit, total=total or None)

    def show(self, count: int) -> None:
        """Show the current count, with its rate since the last line."""
        then, before = self._last
        elapsed = time.monotonic() - then
        if elapsed >= (SECONDS_BETWEEN_LINES if self._is_log else 1.0):
            self._last = (time.monotonic(), count)
            line = self._line(count, (count - before) / elapsed)
            if self._is_log:
                warn(line)
            self._bar.update(self._task, description=line)
        self._bar.update(self._task, completed=count, total=max(self._total, count) if self._total else None)

    def _line(self, count: int, rate: float) -> str:
        line = f"{count:,} {self._unit}, {rate:,.0f} a second"
        if self._total > count and rate > 0:
            line += f", about {clock((self._total - count) / rate)} left"
        return line

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
