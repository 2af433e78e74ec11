"""RunLog: the open folder of a run. Metrics to metrics.jsonl, sinks and the terminal.

Invariant: one process writes a folder, and metrics.jsonl holds each step of a phase at most
once: a phase that starts or resumes first cuts the rows that come after its checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sleuth.errors import TrainingError
from sleuth.lock import FolderLock
from sleuth.storage import whole_file
from sleuth.text import clock
from sleuth.training.runs.sinks import Sink

HEADLINES = {
    "reward/total": "reward",
    "rollouts/valid_format": "valid",
    "rollouts/searches": "searches",
    "rollouts/response_length": "tokens",
    "update/loss": "loss",
    "update/kl": "kl",
    "update/entropy": "entropy",
    "time/step_s": "s",
}
"""Figures worth a place on the terminal, with their short names."""


class MetricsFile:
    """Rows as JSON lines, each flushed as it is written; NaN and infinities become null."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab")

    def cut(self, phase: str, step: int) -> None:
        """Drop the rows of `phase` after `step`, and a last line that was cut short by a kill."""
        kept = [
            line for line in self._path.read_bytes().splitlines(keepends=True) if _stays(line, phase, step)
        ]
        self._file.close()
        with whole_file(self._path) as file:
            file.writelines(kept)
        self._file = self._path.open("ab")

    def write(self, phase: str, step: int, figures: Mapping[str, float]) -> None:
        """Append one row."""
        row: dict[str, Any] = {"phase": phase, "step": step}
        row |= {name: value if math.isfinite(value) else None for name, value in figures.items()}
        self._file.write(msgspec.json.encode(row) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; harmless if closed already."""
        self._file.close()


def _stays(line: bytes, phase: str, step: int) -> bool:
    try:
        row = msgspec.json.decode(line) if line.endswith(b"\n") else None
    except msgspec.DecodeError:
        return False
    if not isinstance(row, dict):
        return False
    return row.get("phase") != phase or (isinstance(row.get("step"), int) and row["step"] <= step)


class RunLog:
    """Lock, metrics and progress of one run folder; use it as a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        sinks: Sequence[Sink] = (),
        settings: Mapping[str, Any] | None = None,
        console: Console | None = None,
    ) -> None:
        """Creates `folder` if need be. Raises BusyError if another process writes there.

        `settings` (the resolved recipe) go to the sinks. Progress goes to standard error unless
        a console is given, so that standard output stays free for results.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
            self._metrics = MetricsFile(folder / "metrics.jsonl")
        except OSError as error:
            raise TrainingError(f"run folder {folder} cannot be written: {error.strerror}") from error
        self.folder = folder
        self._terminal = Terminal(console or Console(stderr=True))
        self._phase = ""
        self._sinks: list[Sink] = []
        try:
            for sink in sinks:
                sink.open(folder, settings or {})
                self._sinks.append(sink)
        except BaseException:
            self.close()
            raise
        if self._lock.stale:
            self.say(f"{folder}: process {self._lock.stale} ended without closing this run; taking it up")

    def begin(self, phase: str, total: int, done: int = 0) -> None:
        """Start or resume a phase of `total` steps of which `done` are behind us."""
        self._phase = phase
        self._metrics.cut(phase, done)
        self._terminal.begin(phase, total, done)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """The row of a step of the current phase."""
        self._metrics.write(self._phase, step, figures)
        finite = {name: value for name, value in figures.items() if math.isfinite(value)}
        for sink in self._sinks:
            sink.write(
                step,
                finite if self._phase == "train" else {f"{self._phase}/{k}": v for k, v in finite.items()},
            )
        self._terminal.step(step, finite)

    def activity(self, text: str) -> None:
        """What is going on inside the current step; shown only on a live terminal."""
        self._terminal.activity(text)

    def say(self, line: str) -> None:
        """One line for the person who watches."""
        self._terminal.say(line)

    def end(self) -> None:
        """The current phase is over."""
        self._terminal.end()

    def close(self) -> None:
        """Flush everything and let others write."""
        self._terminal.end()
        for sink in self._sinks:
            sink.close()
        self._metrics.close()
        self._lock.release()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Terminal:
    """A live bar on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._phase, self._total, self._done = "", 0, 0
        self._began = time.monotonic()

    def begin(self, phase: str, total: int, done: int) -> None:
        """Show a phase."""
        self.end()
        self._phase, self._total, self._done = phase.replace("_", " "), total, done
        self._began = time.monotonic()
        if done:
            self.say(f"{self._phase}: continuing after step {done} of {total}")
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(30),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._progress = Progress(*columns, TextColumn("{task.fields[now]}"), console=self._console)
            self._task = self._progress.add_task(self._phase, total=total, completed=done, now="")
            self._progress.start()

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """A step is done."""
        shown = " · ".join(
            f"{short} {figures[name]:.3g}" for name, short in HEADLINES.items() if name in figures
        )
        if self._progress is not None:
            self._progress.update(self._task, completed=step, now="")
        elapsed = time.monotonic() - self._began
        left = elapsed / max(1, step - self._done) * (self._total - step)
        self.say(f"{self._phase} {step}/{self._total} · {shown} · {clock(elapsed)}, {clock(left)} left")

    def activity(self, text: str) -> None:
        """Beside the bar; plain lines would flood a log file."""
        if self._progress is not None:
            self._progress.update(self._task, now=text)

    def say(self, line: str) -> None:
        """One plain line, above the bar if there is one."""
        # Not markup: a question or a path may hold square brackets.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
