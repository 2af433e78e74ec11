"""Evaluation: the finished result of one run over one file of questions, in memory and as a folder.

A folder holds settings.json (from the start), trajectories.jsonl, questions.jsonl and
rewards.jsonl (growing), and result.json (at the end, written in one rename).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.evaluation.records import Key, Record, key_of, read_records
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.rollouts.store import TrajectoryReader
from sleuth.storage import read_json, read_lines
from sleuth.types import Score, Trajectory

SETTINGS = "settings.json"
TRAJECTORIES = "trajectories.jsonl"
QUESTIONS = "questions.jsonl"
REWARDS = "rewards.jsonl"
RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class Leaks:
    """Whether evaluation questions were among the training questions."""

    checked: bool
    """False: no training questions were given, so nothing is known."""
    count: int = 0
    ids: tuple[str, ...] = ()
    """The first few leaked evaluation ids."""


@dataclass(frozen=True)
class Evaluation:
    """One system on one file of questions."""

    folder: Path
    n: int
    """Questions, faults included."""
    metrics: Mapping[str, Estimate]
    """Figure → mean with its interval."""
    faults: int
    """Episodes that failed from outside; they count as wrong."""
    fault_examples: tuple[str, ...]
    endings: Mapping[str, int]
    """How many episodes ended in which way."""
    leaks: Leaks
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float
    """Time spent, all sessions together."""
    engine: Mapping[str, str] = field(default_factory=dict)
    """How the model was run: engine, arithmetic, device, room; empty in older files."""
    source: str = ""
    """Where the questions come from, such as "hotpotqa:dev.json"; "" if that was not said."""

    def __getitem__(self, name: str) -> Estimate:
        """A figure by name."""
        return self.metrics[name]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "folder"}
        plain["metrics"] = {name: estimate.to_dict() for name, estimate in self.metrics.items()}
        return dict(msgspec.to_builtins(plain))

    def records(self) -> list[Record]:
        """The per-question records."""
        return read_records(self.folder / QUESTIONS)

    def trajectories(self) -> Iterator[Trajectory]:
        """The episodes with their scores, in the order in which they ended."""
        return read_trajectories(self.folder)


def read_trajectories(folder: Path) -> Iterator[Trajectory]:
    """Episodes of an evaluation folder, scored where a reward was recorded."""
    scores = read_scores(folder)
    for trajectory in TrajectoryReader(folder / TRAJECTORIES):
        yield replace(trajectory, score=scores.get(key_of(trajectory.question)))


def read_scores(folder: Path) -> dict[Key, Score]:
    """Rewards recorded so far."""
    return {
        (row["dataset"], row["id"]): Score(row["total"], row["parts"], row["invalid"])
        for row in read_lines(folder / REWARDS)
    }


def summarise(records: Sequence[Record], scores: Mapping[Key, Score]) -> dict[str, Estimate]:
    """Mean and interval of every figure, rewards included; the order of the records does not matter."""
    ordered = sorted(records, key=lambda record: record.key)
    names = dict.fromkeys(name for record in ordered for name in record.metrics)
    columns = {name: [record.metrics.get(name) for record in ordered] for name in names}
    if scores:
        valid = {key: score for key, score in scores.items() if not score.invalid}
        parts = dict.fromkeys(part for score in valid.values() for part in score.parts)
        columns["reward"] = [valid[r.key].total if r.key in valid else None for r in ordered]
        for part in parts:
            columns[f"reward/{part}"] = [
                valid[r.key].parts.get(part) if r.key in valid else None for r in ordered
            ]
    return {name: bootstrap_mean(values) for name, values in columns.items()}


def load_evaluation(folder: Path) -> Evaluation:
    """A finished evaluation. Raises DataError if the folder holds none, or an unfinished one."""
    if not (folder / RESULT).exists():
        what = "an unfinished evaluation" if (folder / SETTINGS).exists() else "no evaluation"
        raise DataError(f"{folder}: {what} ({RESULT} is missing)")
    try:
        return msgspec.convert(
            read_json(folder / RESULT) | {"folder": str(folder)}, Evaluation, dec_hook=_path
        )
    except msgspec.ValidationError as error:
        raise DataError(f"{folder / RESULT}: {error}") from error


def _path(kind: type[Any], value: Any) -> Any:
    return kind(value)
