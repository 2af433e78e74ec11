"""Meter: how far a long count has come: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from types import TracebackType

from sleuth.cli.output import warn

SECONDS_BETWEEN_LINES = 30.0


class Meter:
    """Shows a count of `unit`s on standard error with its rate and, if the total is known, the time left.

    total: about how many there will be; 0 = not known. start: how many there are already.
    """

    def __init__(self, unit: str, total: int = 0, *, start: int = 0, silent: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._unit, self._total = unit, total
        self._last = (time.monotonic(), start)
        console = Console(stderr=True)
        self._is_log = not (silent or console.is_terminal)
        times = (TimeRemainingColumn(), TextColumn("left")) if total else (TimeElapsedColumn(),)
        columns = (
            TextColumn(f"{{task.completed:,.0f}} {unit}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            *times,
        )
        self._bar = Progress(
            *columns, console=console, disable=silent or not console.is_terminal, transient=True
        )
        self._task = self._bar.add_task("", total=total or None, rate="")

    def tell(self, count: int) -> None:
        """The count is now `count`."""
        then, before = self._last
        elapsed = time.monotonic() - then
        if elapsed >= (SECONDS_BETWEEN_LINES if self._is_log else 1.0):
            self._last = (time.monotonic(), count)
            rate = (count - before) / elapsed
            if self._is_log:
                warn(self._line(count, rate))
            self._bar.update(self._task, rate=f"{rate:,.0f}/s")
        total = max(self._total, count) if self._total else None
        self._bar.update(self._task, completed=count, total=total)

    def _line(self, count: int, rate: float) -> str:
        line = f"{count:,} {self._unit}, {rate:,.0f} a second"
        if self._total <= count or rate <= 0:
            return line
        return f"{line}, about {_duration((self._total - count) / rate)} left"

    def __enter__(self) -> Meter:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


def _duration(seconds: float) -> str:
    """In the largest unit that makes it two or more: "90 s", "3 min", "2 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
