"""evaluate: a file of questions in, a result folder out. Greedy, whole file, resumable.

Each episode is on disk when it ends, so a killed evaluation continues with the questions that are
left. An episode that failed from outside is counted as wrong and reported, never dropped.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sleuth.datasets.leak import find_leaks
from sleuth.engines.base import Engine
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.records import Key, Record, key_of, read_records, record_of
from sleuth.evaluation.result import (
    QUESTIONS,
    RESULT,
    REWARDS,
    SETTINGS,
    TRAJECTORIES,
    Evaluation,
    Leaks,
    read_scores,
    summarise,
)
from sleuth.evaluation.settings import conflicts, settings_of, versions
from sleuth.lock import FolderLock
from sleuth.metrics.answers import rules_of
from sleuth.rewards.base import Reward, score_all
from sleuth.rollouts.run import roll_out
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.storage import LinesWriter, read_json, read_lines, write_json
from sleuth.text import clock
from sleuth.types import Question, Score, Trajectory

_ROUND = 8
"""Rollout batches between two scorings by the reward: memory stays flat and the engine's batch full."""
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an evaluation is."""

    done: int
    total: int
    em: float | None  # Running means over the finished questions; None before the first.
    f1: float | None
    valid_format: float | None
    faults: int
    elapsed_s: float  # Earlier sessions included.
    remaining_s: float | None
    """At this session's pace; None until it has finished a quarter of a rollout batch."""

    def line(self) -> str:
        figures = (("EM", self.em), ("F1", self.f1), ("valid", self.valid_format))
        parts = [f"{self.done}/{self.total}", *(f"{name} {v:.3f}" for name, v in figures if v is not None)]
        if self.faults:
            parts.append(f"{self.faults} failed")
        if self.remaining_s is not None:
            parts.append(f"{clock(self.remaining_s)} left")
        return " · ".join(parts)


@dataclass(frozen=True)
class Origin:
    """Where questions come from, for the record of an evaluation."""

    source: str = ""  # Data spec of the questions.
    train_questions: Sequence[Question] | None = None
    """Training questions to find leaks in; None = not checked."""
    perturbation: Mapping[str, str] = field(default_factory=dict)
    """Changes made on purpose to questions or passages (a robustness run)."""


def evaluate(
    questions: Sequence[Question],
    world: World,
    folder: Path,
    *,
    reward: Reward | None = None,
    width: int = 64,
    origin: Origin = Origin(),
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Play every question once and write `folder`; a folder of the same settings is continued.

    `width` episodes run at a time; it changes speed, never results. `reward` is recorded in
    addition to the official scores. Raises DataError for no or repeated questions, and ConfigError
    for a folder that holds an evaluation with other settings or weights. A folder that is being
    written raises BusyError, and a model that fails EngineError (run again to continue).
    """
    _check(questions)
    settings = settings_of(questions, world, reward, origin.perturbation)
    _claim(folder, settings)
    leaks = _leaks(questions, origin.train_questions)
    per_round = width * _ROUND
    with _Session(folder, len(questions), width, progress) as session:
        todo = [question for question in questions if key_of(question) not in session.records]
        for start in range(0, max(1, len(todo)), per_round):
            roll_out(todo[start : start + per_round], world, width=width, on_done=session.finish)
            if reward is not None:
                session.score(reward, world.engine, per_round)
    records = list(session.records.values())
    faults = [record for record in records if record.fault]
    evaluation = Evaluation(
        folder=folder,
        n=len(records),
        metrics=summarise(records, read_scores(folder)),
        faults=len(faults),
        fault_examples=tuple(f"{record.id}: {record.fault}" for record in faults[:_EXAMPLES]),
        endings=dict(sorted(Counter(record.ending for record in records).items())),
        leaks=leaks,
        settings=settings,
        versions=versions(),
        seconds=round(session.elapsed_s, 1),
        engine=world.engine.describe(),
        source=origin.source,
    )
    write_json(folder / RESULT, evaluation.to_dict())
    return evaluation


def set_aside(folder: Path, engine: Engine, policy: Any, step: int | None = None) -> None:
    """Rename `folder` if it holds an evaluation of other weights than the policy's.

    Its new name ends with the step of its weights, or with their hash if the step is not known.
    """
    if not (settings := folder / SETTINGS).exists():
        return
    engine.sync(policy)
    if (weights := read_json(settings)["weights"]) != engine.fingerprint():
        other = folder.with_name(f"{folder.name}-{weights if step is None else f'step-{step:06d}'}")
        shutil.rmtree(other, ignore_errors=True)
        folder.rename(other)


def _check(questions: Sequence[Question]) -> None:
    if not questions:
        raise DataError("there are no questions to evaluate")
    seen: set[Key] = set()
    for key in map(key_of, questions):
        if key in seen:
            raise DataError(f"question id {key[1]!r} occurs twice in data set {key[0]!r}")
        seen.add(key)


def _claim(folder: Path, settings: dict[str, Any]) -> None:
    """Make the folder this evaluation's own, or make sure that it already is."""
    if not (folder / SETTINGS).exists():
        if (folder / TRAJECTORIES).exists() or (folder / QUESTIONS).exists():
            raise ConfigError(
                f"{folder} holds files of something else ({SETTINGS} is missing); choose another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / SETTINGS, settings)
        return
    if names := conflicts(read_json(folder / SETTINGS), settings):
        raise ConfigError(
            f"{folder} holds an evaluation that differs in {', '.join(names)}; choose another folder"
        )


def _leaks(questions: Sequence[Question], train_questions: Sequence[Question] | None) -> Leaks:
    if train_questions is None:
        return Leaks(checked=False)
    leaked = find_leaks(train_questions, questions)
    return Leaks(checked=True, count=len(leaked), ids=tuple(leak.id for leak in leaked[:_EXAMPLES]))


class _Session:
    """The open files of one evaluation. Line i of all three is the same episode."""

    def __init__(
        self, folder: Path, total: int, width: int, progress: Callable[[Progress], None] | None
    ) -> None:
        self._lock = FolderLock(folder)
        (folder / RESULT).unlink(missing_ok=True)
        self._folder, self._total, self._progress = folder, total, progress
        self._trajectories = TrajectoryWriter(folder / TRAJECTORIES)
        self._lines = LinesWriter(folder / QUESTIONS)
        self._rewards = LinesWriter(folder / REWARDS)
        self._num_scored = sum(1 for _ in read_lines(folder / REWARDS))
        self.records: dict[Key, Record] = {r.key: r for r in read_records(folder / QUESTIONS)}
        self._num_faults = 0
        self._sums = dict.fromkeys(("em", "f1", "valid_format"), (0.0, 0))
        for record in self.records.values():
            self._add(record)
        self._began = time.monotonic()
        self._earlier_s = max((record.elapsed_s for record in self.records.values()), default=0.0)
        reader = TrajectoryReader(folder / TRAJECTORIES)
        # A kill between the two writes leaves an episode without its record.
        for index in range(len(self.records), len(reader)):
            self._record(reader[index])
        self._num_earlier = len(self.records)
        # Episodes run concurrently, so the first to end does not show the pace.
        self._warm_up = min(width, total - self._num_earlier) / 4

    @property
    def elapsed_s(self) -> float:
        """Seconds spent so far, earlier sessions included."""
        return self._earlier_s + time.monotonic() - self._began

    def finish(self, trajectory: Trajectory) -> None:
        """Put a finished episode on disk and report progress."""
        self._trajectories.append(trajectory)
        self._record(trajectory)
        if self._progress is not None:
            self._progress(self._now())

    def score(self, reward: Reward, engine: Engine, batch: int) -> None:
        """Record the reward of every episode that has none yet; a failed episode gets none."""
        reader = TrajectoryReader(self._folder / TRAJECTORIES)
        while self._num_scored < len(reader):
            stop = min(self._num_scored + batch, len(reader))
            group = [reader[index] for index in range(self._num_scored, stop)]
            for trajectory, score in zip(group, score_all(reward, group, engine), strict=True):
                row = {"id": trajectory.question.id, "dataset": trajectory.question.dataset}
                kept = score if not score.invalid else Score(0.0, {}, score.invalid)
                values = {"parts": kept.parts, "invalid": kept.invalid, "details": kept.details}
                self._rewards.write(row | {"total": kept.total} | values)
            self._num_scored = stop

    def _record(self, trajectory: Trajectory) -> None:
        record = record_of(trajectory, rules_of(trajectory.question.dataset), self.elapsed_s)
        self._lines.write(record.to_dict())
        self.records[record.key] = record
        self._add(record)

    def _add(self, record: Record) -> None:
        """Running sums, so that progress costs the same at question 10 and question 10,000."""
        self._num_faults += bool(record.fault)
        for name, (total, count) in self._sums.items():
            if (value := record.metrics[name]) is not None:
                self._sums[name] = (total + value, count + 1)

    def _now(self) -> Progress:
        done = len(self.records)
        new = done - self._num_earlier
        left = (time.monotonic() - self._began) / new * (self._total - done) if new >= self._warm_up else None
        means = {name: total / count if count else None for name, (total, count) in self._sums.items()}
        return Progress(
            done, self._total, **means, faults=self._num_faults, elapsed_s=self.elapsed_s, remaining_s=left
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._trajectories, self._lines, self._rewards):
            file.close()
        self._lock.release()
