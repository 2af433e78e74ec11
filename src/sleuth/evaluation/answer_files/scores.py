"""score_predictions: a file of answers by any system, under a data set's official rules.

Rows are {"id"?, "prediction", "answers"} and whatever else sleuth.evaluation.answer_files.predictions reads. A
prediction that is null or absent is wrong and counted; a row that cannot be read is named and left
out; of a repeated id the first row counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.evaluation.answer_files.citing import CitationFigures, NamedJudge, citation_figures
from sleuth.evaluation.answer_files.extra_scores import ExtraScores, extra_scores
from sleuth.evaluation.answer_files.gold import Gold, accepted, held_against, load_gold
from sleuth.evaluation.answer_files.predictions import Row, read_rows
from sleuth.evaluation.statistics import Estimate, bootstrap_mean, minimum_detectable_difference
from sleuth.metrics.answers import Rules, exact_match, f1, rules_for

_NAMED = 20
"""Bad rows spelled out in JSON output; the count is always given."""


@dataclass(frozen=True, slots=True)
class PredictionScores:
    """EM and F1 of a file, and what else it allows."""

    dataset: str
    rules: Rules
    em: Estimate
    f1: Estimate
    rows: int
    """Questions that were read, those the rules leave out included; with a gold file all of its questions."""
    missing: int
    """Questions without a prediction; they count as wrong."""
    several_golds: int
    """Rows with more golds than the data set's own files ever hold; all were accepted."""
    bad: list[BadRecord] = field(default_factory=list)
    """Rows that could not be read, repeated ids, unknown ids, other data sets; they count nowhere."""
    extra: ExtraScores = field(default_factory=ExtraScores)
    problems: dict[str, int] = field(default_factory=dict)
    """How many rows are bad in which way, and how many gold questions no row answers ("absent")."""
    gold: Gold | None = None
    citations: CitationFigures | None = None
    """Only if a judge was given."""

    @property
    def n(self) -> int:
        """Questions that were scored."""
        return self.em.n

    def measures(self) -> list[tuple[str, Estimate]]:
        """(name, figure) in the order in which to show them."""
        extra = [(name.replace("_", " "), estimate) for name, estimate in self.extra.means.items()]
        cited = [(name.replace("_", " "), estimate) for name, estimate in self._cited().items()]
        return [("EM", self.em), ("F1", self.f1), *extra, *cited]

    def _cited(self) -> dict[str, Estimate]:
        found = self.citations
        return {"citation_recall": found.recall, "citation_precision": found.precision} if found else {}

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
            **{name: estimate.to_dict() for name, estimate in (self.extra.means | self._cited()).items()},
            **self.extra.figures,
            **({"citations": self.citations.to_dict()} if self.citations else {}),
            "left_out": self.em.left_out,
            "missing": self.missing,
            "several_golds": self.several_golds,
            "minimum_detectable_difference": minimum_detectable_difference(self.n),
            "bad_rows": _told(self.bad),
            "problems": self.problems,
            "gold": None
            if self.gold is None
            else {
                "source": self.gold.source,
                "questions": len(self.gold.questions),
                "datasets": self.gold.datasets,
                "bad_records": _told(self.gold.bad),
            },
        }


def _told(bad: Sequence[BadRecord]) -> dict[str, Any]:
    return {"count": len(bad), "first": [str(record) for record in bad[:_NAMED]]}


def score_predictions(
    path: Path, dataset: str, *, gold: str = "", judge: NamedJudge | None = None
) -> PredictionScores:
    """Score a JSON-lines file; `gold` is a source of questions as load_questions reads it, "" for none.

    With a `judge`, citations of the rows that carry passages are scored too. Raises DataError if the
    file cannot be read, holds no usable row, mixes other data sets, or has no passages for the judge.
    """
    rules = rules_for(dataset)
    asked = load_gold(gold, rules) if gold else None
    numbered, bad, problems = _usable(path, rules, gold_apart=asked is not None, cited=judge is not None)
    rows = [row for _, row in numbered]
    if asked is not None:
        rows, unknown, absent = held_against(numbered, asked, str(path))
        bad += unknown
        problems |= {"unknown_id": len(unknown), "absent": absent}
        numbered = [] if len(unknown) == len(numbered) else numbered
    if not numbered:
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
        bad=sorted(bad, key=lambda record: record.line),
        extra=extra_scores(rows, rules),
        problems={name: count for name, count in problems.items() if count},
        gold=asked,
        citations=None if judge is None else citation_figures(rows, judge),
    )


def _usable(
    path: Path, rules: Rules, *, gold_apart: bool, cited: bool
) -> tuple[list[tuple[int, Row]], list[BadRecord], dict[str, int]]:
    """Rows of this data set with their lines, each id once; the others; and how many were bad in which way."""
    read: list[tuple[int, Row]] = []
    bad: list[BadRecord] = []
    for number, row in read_rows(path, rules, gold_apart=gold_apart, cited=cited):
        if isinstance(row, BadRecord):
            bad.append(row)
        else:
            read.append((number, row))
    problems = {"unreadable": len(bad), "other_dataset": 0, "duplicate_id": 0}
    kept = accepted(Counter(row.dataset for _, row in read), rules, str(path))
    usable: list[tuple[int, Row]] = []
    lines: dict[str, int] = {}
    for number, row in read:
        if row.dataset not in kept:
            problems["other_dataset"] += 1
            bad.append(BadRecord(str(path), number, "dataset", f"{row.dataset!r}, not {rules.name!r}"))
        elif row.id and row.id in lines:
            problems["duplicate_id"] += 1
            bad.append(BadRecord(str(path), number, "id", f"{row.id!r} was already on line {lines[row.id]}"))
        else:
            lines[row.id] = number
            usable.append((number, row))
    return usable, bad, problems
