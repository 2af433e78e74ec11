"""score_predictions: a file of answers by any system, under a data set's official rules.

Rows are {"id"?, "prediction", "answers"}. A prediction that is null or absent is wrong and
counted; a row that cannot be read is named and left out; of a repeated id the first row counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.evaluation.statistics import Estimate, bootstrap_mean, minimum_detectable_difference
from sleuth.metrics.answers import Rules, exact_match, f1, rules_for

_NAMED = 20
"""Bad rows spelled out in JSON output; the count is always given."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prediction with its golds."""

    id: str
    prediction: str | None
    answers: tuple[str, ...]
    """Empty if unanswerable."""


@dataclass(frozen=True, slots=True)
class PredictionScores:
    """EM and F1 of a file."""

    dataset: str
    rules: Rules
    em: Estimate
    f1: Estimate
    rows: int
    """Rows that were read, those the rules leave out included."""
    missing: int
    """Rows without a prediction; they count as wrong."""
    several_golds: int
    """Rows with more golds than the data set's own files ever hold; all were accepted."""
    bad: list[BadRecord] = field(default_factory=list)
    """Rows that could not be read, and repeated ids; they count nowhere."""

    @property
    def n(self) -> int:
        """Questions that were scored."""
        return self.em.n

    def measures(self) -> list[tuple[str, Estimate]]:
        """(name, figure) in the order in which to show them."""
        return [("EM", self.em), ("F1", self.f1)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "dataset": self.dataset,
            "rules": {
                "name": self.rules.name,
                "normaliser": self.rules.normaliser,
                "source": self.rules.source,
            },
            "n": self.n,
            "em": self.em.to_dict(),
            "f1": self.f1.to_dict(),
            "left_out": self.em.left_out,
            "missing": self.missing,
            "several_golds": self.several_golds,
            "minimum_detectable_difference": minimum_detectable_difference(self.n),
            "bad_rows": {"count": len(self.bad), "first": [str(bad) for bad in self.bad[:_NAMED]]},
        }


class _BadRowError(Exception):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


def score_predictions(path: Path, dataset: str) -> PredictionScores:
    """Score a JSON-lines file. Raises DataError if it cannot be read or holds no usable row."""
    rules = rules_for(dataset)
    rows: list[Row] = []
    bad: list[BadRecord] = []
    lines: dict[str, int] = {}
    for number, row in _rows(path, rules):
        if isinstance(row, BadRecord):
            bad.append(row)
        elif row.id and row.id in lines:
            bad.append(BadRecord(str(path), number, "id", f"{row.id!r} was already on line {lines[row.id]}"))
        else:
            lines[row.id] = number
            rows.append(row)
    if not rows:
        raise DataError(
            f"{path}: no usable rows" + (f"; first problem: {bad[0]}" if bad else ": the file is empty")
        )
    scored = [row for row in rows if row.answers or rules.unanswerable != "left out"]
    left_out: list[float | None] = [None] * (len(rows) - len(scored))
    return PredictionScores(
        dataset=dataset,
        rules=rules,
        em=bootstrap_mean([exact_match(r.prediction, r.answers, rules) for r in scored] + left_out),
        f1=bootstrap_mean([f1(r.prediction, r.answers, rules) for r in scored] + left_out),
        rows=len(rows),
        missing=sum(row.prediction is None for row in rows),
        several_golds=sum(len(row.answers) > 1 for row in rows) if rules.golds == "one" else 0,
        bad=bad,
    )


def _rows(path: Path, rules: Rules) -> Iterator[tuple[int, Row | BadRecord]]:
    """Every row that is not blank, with its 1-based line."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                yield number, _row(line, rules)
            except _BadRowError as error:
                yield number, BadRecord(str(path), number, error.name, error.reason)


def _row(line: bytes, rules: Rules) -> Row:
    try:
        values = msgspec.json.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _BadRowError("row", f"not UTF-8 at byte {error.start}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise _BadRowError("row", f"not JSON: {error}") from error
    if not isinstance(values, dict):
        raise _BadRowError("row", f"must be an object, not {_kind(values)}")
    prediction = values.get("prediction")
    if prediction is not None and not isinstance(prediction, str):
        raise _BadRowError("prediction", f"must be text or null, not {_kind(prediction)}")
    identity = values.get("id", "")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise _BadRowError("id", f"must be text or a whole number, not {_kind(identity)}")
    return Row("" if identity is None else str(identity), prediction, _answers(values, rules))


def _answers(values: dict[str, Any], rules: Rules) -> tuple[str, ...]:
    if "answers" not in values:
        raise _BadRowError("answers", "missing")
    answers = values["answers"]
    given = [answers] if isinstance(answers, str) else answers
    if not isinstance(given, list) or not all(isinstance(answer, str) for answer in given):
        raise _BadRowError("answers", f"must be text or a list of texts, not {_kind(answers)}")
    if not given and rules.unanswerable == "none":
        raise _BadRowError("answers", f"empty, but {rules.name} has no unanswerable questions")
    return tuple(given)


def _kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, list):
        return next((f"a list with {_kind(item)}" for item in value if not isinstance(item, str)), "a list")
    if isinstance(value, dict):
        return "an object"
    return "null" if value is None else msgspec.json.encode(value).decode()[:40]
