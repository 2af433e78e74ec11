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
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sleuth.errors import TrainingError
from sleuth.lock import FolderLock
from sleuth.rollouts.store import TrajectoryWriter
from sleuth.storage import LinesWriter, read_lines, whole_file
from sleuth.text import clock
from sleuth.training.runs.sinks import Sink
from sleuth.types import Trajectory

HEADLINES = {
    "reward/total": "reward",
    "rollouts/right": "right",
    "rollouts/valid_format": "valid",
    "rollouts/searches": "searches",
    "rollouts/response_length": "tokens",
    "update/loss": "loss",
    "update/kl": "kl",
    "update/entropy": "entropy",
    "time/step_s": "s",
}
"""Figures worth a place on the terminal, with their short names."""
LARGEST = 1e300
"""Number written for an infinity, which JSON lacks: a spike of KL stays a spike."""


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

        `settings` (the resolved recipe) are for the sinks. Progress is printed to standard error
        unless a console is given, so that standard output stays free for results.
        """
        self.folder = folder
        self._path = folder / "metrics.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
            self._rows = LinesWriter(self._path)
        except OSError as error:
            raise TrainingError(f"run folder {folder} cannot be written: {error.strerror}") from error
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
            self.say(f"{folder}: process {self._lock.stale} ended without closing this run; continuing it")

    def rows(self, phase: str) -> list[dict[str, float]]:
        """Rows of a phase that are on the disk already."""
        found = read_lines(self.folder / "metrics.jsonl")
        return [row for row in found if row.get("phase") == phase]

    def begin(self, phase: str, total: int, done: int = 0) -> None:
        """Start or resume a phase of `total` steps of which `done` are complete."""
        self._phase = phase
        self._rows.close()
        kept = [row for row in read_lines(self._path) if row["phase"] != phase or row["step"] <= done]
        with whole_file(self._path) as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in kept)
        self._rows = LinesWriter(self._path)
        self._terminal.begin(phase, total, done)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Write the row of a step of the current phase; NaN becomes null, an infinity a number of LARGEST."""
        finite = {name: min(max(v, -LARGEST), LARGEST) for name, v in figures.items() if not math.isnan(v)}
        self._rows.write({"phase": self._phase, "step": step} | dict.fromkeys(figures) | finite)
        prefix = "" if self._phase == "train" else f"{self._phase}/"
        for sink in self._sinks:
            sink.write(step, {prefix + name: value for name, value in finite.items()})
        self._terminal.step(step, finite)

    def activity(self, text: str) -> None:
        """Show the current part of a step next to the bar; plain lines would flood a log file."""
        self._terminal.activity(text)

    def say(self, line: str) -> None:
        self._terminal.say(line)

    def keep(self, name: str, trajectories: Sequence[Trajectory]) -> None:
        """Write rollouts/NAME.jsonl, for reading and replaying; an earlier file is replaced."""
        path = self.folder / "rollouts" / f"{name}.jsonl"
        path.unlink(missing_ok=True)
        with TrajectoryWriter(path) as writer:
            for trajectory in trajectories:
                writer.append(trajectory)

    def end(self) -> None:
        self._terminal.end()

    def close(self) -> None:
        self._terminal.end()
        for sink in self._sinks:
            sink.close()
        self._rows.close()
        self._lock.release()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SilentLog(RunLog):
    """The log of a rank that writes nothing; it reads what the first rank wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self, phase: str, total: int, done: int = 0) -> None: ...

    def write(self, step: int, figures: Mapping[str, float]) -> None: ...

    def activity(self, text: str) -> None: ...

    def say(self, line: str) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


class Terminal:
    """A live bar on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase, self._total, self._done = "", 0, 0
        self._began = self._first = 0.0  # the phase, and its first step here
        self._bar = Progress(disable=True)
        self._task = self._bar.add_task("")

    def begin(self, phase: str, total: int, done: int) -> None:
        self.end()
        self._phase, self._total, self._done = phase.replace("_", " "), total, done
        self._began = time.monotonic()
        if done:
            self.say(f"{self._phase}: continuing after step {done} of {total}")
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[now]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(self._phase, total=total, completed=done, now="")
        self._bar.start()

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        shown = " · ".join(
            f"{short} {figures[name]:.3g}" for name, short in HEADLINES.items() if name in figures
        )
        self._bar.update(self._task, completed=step, now="")
        now, made = time.monotonic(), max(1, step - self._done)
        elapsed = now - self._began
        if made == 1:  # what came before the first step, such as playing the candidates, happens once
            self._first = now - figures.get("time/step_s", elapsed)
        left = (now - self._first) / made * (self._total - step)
        self.say(f"{self._phase} {step}/{self._total} · {shown} · {clock(elapsed)}, {clock(left)} left")

    def activity(self, text: str) -> None:
        self._bar.update(self._task, now=text)

    def say(self, line: str) -> None:
        # Not markup: a question or a path may hold square brackets.
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def end(self) -> None:
        self._bar.stop()
