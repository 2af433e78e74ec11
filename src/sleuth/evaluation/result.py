"""Evaluation: the finished result of one run over one file of questions, in memory and as a folder.

A folder holds settings.json (from the start), trajectories.jsonl, questions.jsonl and rewards.jsonl (growing; line i
is the same episode in all three), and result.json (at the end, written in one rename). judged.jsonl holds the
verdicts of judges, if any was asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.evaluation.figures import HEADLINE
from sleuth.evaluation.records import Key, Record, key_of, read_records
from sleuth.evaluation.statistics import Estimate, bootstrap_mean, bootstrap_ratio
from sleuth.rollouts.store import TrajectoryReader
from sleuth.storage import read_json, read_lines
from sleuth.types import Score, Trajectory

SETTINGS = "settings.json"
TRAJECTORIES = "trajectories.jsonl"
QUESTIONS = "questions.jsonl"
REWARDS = "rewards.jsonl"
JUDGED = "judged.jsonl"
RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class Leaks:
    """Whether evaluation questions were among the training questions."""

    checked: bool  # False: no training questions were given, so nothing is known.
    count: int = 0
    ids: tuple[str, ...] = ()  # The first few leaked evaluation ids.


@dataclass(frozen=True)
class Evaluation:
    """One system on one file of questions."""

    folder: Path
    n: int  # Questions, faults included.
    metrics: Mapping[str, Estimate]  # Figure → mean with its interval.
    faults: int  # Episodes that failed from outside; they count as wrong.
    fault_examples: tuple[str, ...]
    endings: Mapping[str, int]
    leaks: Leaks
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float  # Time spent, all sessions together.
    engine: Mapping[str, str] = field(default_factory=dict)
    """Engine, arithmetic, device and context size; empty in older files."""
    source: str = ""  # Origin of the questions, such as "hotpotqa:dev.json"; "" if not given.

    def __getitem__(self, name: str) -> Estimate:
        """A figure by name."""
        return self.metrics[name]

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        return {
            f.name: msgspec.to_builtins(getattr(self, f.name)) for f in fields(self) if f.name != "folder"
        }

    def headline(self) -> dict[str, Any]:
        """The figures to print, with their intervals."""
        names = (*HEADLINE, "llm_judge", "eqr")
        figures = {name: self.metrics[name].to_dict() for name in names if name in self.metrics}
        return {"n": self.n, **figures, "faults": self.faults, "leaks": self.leaks.count}

    def records(self) -> list[Record]:
        """The per-question records, with the verdicts of judges where there are any."""
        judged = read_verdicts(self.folder)
        records = read_records(self.folder / QUESTIONS)
        return [
            replace(r, metrics={**r.metrics, **{name: found.get(r.key) for name, found in judged.items()}})
            for r in records
        ]

    def figures(self) -> dict[Key, dict[str, float | None]]:
        """Every figure of every question, in the order of their keys: verdicts of judges and rewards included."""
        return _figures(self.records(), read_scores(self.folder))

    def trajectories(self) -> Iterator[Trajectory]:
        """The episodes in the order in which they ended, scored where a reward was recorded."""
        scores = read_scores(self.folder)
        for trajectory in TrajectoryReader(self.folder / TRAJECTORIES):
            yield replace(trajectory, score=scores.get(key_of(trajectory.question)))


def read_scores(folder: Path) -> dict[Key, Score]:
    """Rewards recorded so far."""
    rows = read_lines(folder / REWARDS)
    return {(row["dataset"], row["id"]): msgspec.convert(row, Score) for row in rows}


def read_verdicts(folder: Path) -> dict[str, dict[Key, float]]:
    """Verdicts of judges in [0, 1], by measure and question."""
    found: dict[str, dict[Key, float]] = {}
    for row in read_lines(folder / JUDGED):
        for name in row.keys() & {"llm_judge", "eqr"}:
            found.setdefault(name, {})[row["dataset"], row["id"]] = row[name]
    return found


def summarise(records: Sequence[Record], scores: Mapping[Key, Score]) -> dict[str, Estimate]:
    """Mean and interval of every figure, rewards included; the order of the records does not matter."""
    rows = list(_figures(records, scores).values())
    names = dict.fromkeys(name for row in rows for name in row)
    figures = {name: bootstrap_mean([row.get(name) for row in rows]) for name in names}
    if "evidence_words" in figures:
        totals = [[row.get(name) for row in rows] for name in ("passage_words", "evidence_words")]
        figures["total_compression_ratio"] = bootstrap_ratio(*totals)
    return figures


def _figures(records: Sequence[Record], scores: Mapping[Key, Score]) -> dict[Key, dict[str, float | None]]:
    ordered = sorted(records, key=lambda record: record.key)
    return {record.key: {**record.metrics, **_rewards(scores.get(record.key))} for record in ordered}


def _rewards(score: Score | None) -> dict[str, float | None]:
    if score is None:
        return {}
    if score.invalid:
        return {"reward": None}
    return {
        "reward": score.total,
        **{f"reward/{n}": value for n, value in (score.parts | score.details).items()},
    }


def load_evaluation(folder: Path) -> Evaluation:
    """A finished evaluation. Raises DataError if the folder holds none, or an unfinished one."""
    if not (folder / RESULT).exists():
        what = "an unfinished evaluation" if (folder / QUESTIONS).exists() else "no evaluation"
        raise DataError(f"{folder}: {what} ({RESULT} is missing)")
    try:
        plain = read_json(folder / RESULT) | {"folder": str(folder)}
        return msgspec.convert(plain, Evaluation, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        raise DataError(f"{folder / RESULT}: {error}") from error
