"""score_predictions: a file of answers by any system, under a data set's official rules.

Rows are {"id"?, "prediction", "answers"} and the optional fields that docs/evaluation.md lists. A prediction that
is null or absent is wrong and counted; an unreadable row is named and left out; of a repeated id the first row counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sleuth.datasets.base import BadRecord
from sleuth.errors import DataError
from sleuth.evaluation.answer_files.file_scores import FileScores, file_scores
from sleuth.evaluation.answer_files.gold import Gold, accepted, answer_gold, load_gold
from sleuth.evaluation.answer_files.predictions import Row, read_rows
from sleuth.evaluation.statistics import Estimate, minimum_detectable_difference
from sleuth.judges.base import Judge
from sleuth.judges.llm import LLMJudge
from sleuth.metrics.answers import Rules, rules_for

_NAMED = 20  # Bad rows spelled out in JSON output; the count is always given.


@dataclass(frozen=True, slots=True)
class PredictionScores:
    """EM, F1 and every other score that a file allows."""

    rules: Rules
    dataset: str
    file: FileScores
    rows: int
    """Questions that were read, those the rules leave out included; with a gold file all of its questions."""
    missing: int  # Questions without a prediction; they count as wrong.
    several_golds: int  # Rows with more golds than the data set's own files ever hold; all were accepted.
    bad: list[BadRecord]  # Unreadable rows, repeated ids, unknown ids, other data sets; they count nowhere.
    problems: dict[str, int]
    """Number of bad rows by kind, and of gold questions that no row answers ("absent")."""
    gold: Gold | None = None

    def __getitem__(self, name: str) -> Estimate:
        """A mean by name."""
        return self.file.means[name]

    @property
    def n(self) -> int:
        """Questions that were scored."""
        return self["em"].n

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain: dict[str, Any] = {
            "dataset": self.dataset,
            "rules": {name: getattr(self.rules, name) for name in ("name", "normaliser", "source")},
            "n": self.n,
            **self.file.means,
            **self.file.figures,
            "left_out": self["em"].left_out,
            "missing": self.missing,
            "several_golds": self.several_golds,
            "minimum_detectable_difference": minimum_detectable_difference(self.n),
            "bad_rows": _counted(self.bad),
            "problems": self.problems,
            "gold": None,
        }
        if gold := self.gold:
            asked = {"source": gold.source, "questions": len(gold.questions), "datasets": gold.datasets}
            plain["gold"] = asked | {"bad_records": _counted(gold.bad)}
        return dict(msgspec.to_builtins(plain))


def _counted(bad: Sequence[BadRecord]) -> dict[str, Any]:
    return {"count": len(bad), "first": [str(record) for record in bad[:_NAMED]]}


def score_predictions(
    path: Path,
    dataset: str,
    *,
    gold: str = "",
    judge: tuple[str, Judge] | None = None,
    llm: LLMJudge | None = None,
) -> PredictionScores:
    """Score a JSON-lines file; `gold` is a source of questions as load_questions reads it, "" for none.

    With a named `judge`, citations of the rows that carry passages and evidence of those with a question are scored
    too; with `llm`, whether each response is correct. Raises DataError if the file cannot be read, holds no usable
    row, mixes other data sets, or has nothing for the judge.
    """
    rules = rules_for(dataset)
    asked = load_gold(gold, rules) if gold else None
    numbered, bad, problems = _usable(path, rules, gold_apart=asked is not None, cited=judge is not None)
    rows, usable = [row for _, row in numbered], len(numbered)
    if asked is not None:
        rows, unknown, absent = answer_gold(numbered, asked, str(path))
        bad += unknown
        problems |= {"unknown_id": len(unknown), "absent": absent}
        usable -= len(unknown)
    if not usable:
        reason = f"; first problem: {bad[0]}" if bad else ": the file is empty"
        raise DataError(f"{path}: no usable rows{reason}")
    return PredictionScores(
        rules=rules,
        dataset=dataset,
        file=file_scores(rows, rules, judge, llm),
        rows=len(rows),
        missing=sum(row.prediction is None for row in rows),
        several_golds=sum(len(row.answers) > 1 for row in rows) if rules.golds == "one" else 0,
        bad=sorted(bad, key=lambda record: record.line),
        problems={name: count for name, count in problems.items() if count},
        gold=asked,
    )


def _usable(
    path: Path, rules: Rules, *, gold_apart: bool, cited: bool
) -> tuple[list[tuple[int, Row]], list[BadRecord], dict[str, int]]:
    """Rows of this data set with their lines, each id once; the others; and their number by kind of problem."""
    found = list(read_rows(path, rules, gold_apart=gold_apart, cited=cited))
    read = [(number, row) for number, row in found if isinstance(row, Row)]
    bad = [row for _, row in found if isinstance(row, BadRecord)]
    problems = {"unreadable": len(bad), "other_dataset": 0, "duplicate_id": 0}
    kept = accepted((row.dataset for _, row in read), rules, str(path))
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
