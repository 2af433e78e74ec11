"""Per-question records of an evaluation, one JSON line each.

A question's key is (data set, id): ids are unique only inside one data set.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.evaluation.measures import measure
from sleuth.metrics.answers import Rules, golds_of, prediction_of
from sleuth.storage import read_lines
from sleuth.types import Question, Trajectory

Key = tuple[str, str]  # (data set, id).


def key_of(question: Question) -> Key:
    """The question's key."""
    return question.dataset, question.id


@dataclass(frozen=True, slots=True)
class Record:
    """The outcome of one question."""

    id: str
    dataset: str
    question: str
    prediction: str | None  # The scored text: "" for a refusal, None if the episode ended without an answer.
    golds: tuple[str, ...]  # Accepted answers; empty if unanswerable.
    ending: str
    fault: str  # Not empty: the episode failed from outside, and counts as wrong.
    malformed: str
    kind: str
    elapsed_s: float
    """Seconds spent on this evaluation when the question was finished, earlier sessions included."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Figures by name; in the file they are fields like the others."""

    @property
    def key(self) -> Key:
        """(data set, id)."""
        return self.dataset, self.id

    def to_dict(self) -> dict[str, Any]:
        """One flat JSON object."""
        plain = asdict(self)
        metrics: dict[str, Any] = plain.pop("metrics")
        return plain | metrics


_FIELDS = {f.name for f in fields(Record)} - {"metrics"}


def record_of(trajectory: Trajectory, rules: Rules, elapsed_s: float) -> Record:
    """The record of a finished episode."""
    question = trajectory.question
    return Record(
        id=question.id,
        dataset=question.dataset,
        question=question.text,
        prediction=prediction_of(trajectory),
        golds=golds_of(question),
        ending=trajectory.ending,
        fault=trajectory.fault,
        malformed=trajectory.malformed,
        kind=question.kind,
        elapsed_s=round(elapsed_s, 3),
        metrics=measure(trajectory, rules),
    )


def read_records(path: Path) -> list[Record]:
    """The records of an evaluation, in the order in which the questions were finished."""
    records = []
    for number, row in enumerate(read_lines(path), 1):
        metrics = {name: value for name, value in row.items() if name not in _FIELDS}
        try:
            records.append(msgspec.convert(row | {"metrics": metrics}, Record))
        except msgspec.ValidationError as error:
            raise DataError(f"{path}:{number}: {error}") from error
    return records
