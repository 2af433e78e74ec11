"""Citation scores of a predictions file: ALCE's recall and precision of answers that cite passages as [1], [2].

A judge that fails costs the answers it should have judged: they have no figure and are counted,
never scored 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sleuth.errors import DataError, EngineError, JudgeError
from sleuth.evaluation.answer_files.predictions import Row
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.judges.base import Judge
from sleuth.metrics.citations import Cited, citation_report


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge and what results call it."""

    name: str
    judge: Judge


@dataclass(frozen=True, slots=True)
class CitationFigures:
    """Of the answers that came with passages."""

    recall: Estimate
    precision: Estimate
    judge: str
    answers: int
    """Predictions that came with passages."""
    without_sentence: int
    unjudged: int
    """Left out since the judge gave no verdict on a pair that mattered."""
    failure: str = ""
    """Why the judge as a whole could not be asked; then nothing was judged."""

    def to_dict(self) -> dict[str, Any]:
        """The figures that are not means."""
        names = ("judge", "answers", "without_sentence", "unjudged", "failure")
        return {name: getattr(self, name) for name in names}


def citation_figures(rows: Sequence[Row], judge: NamedJudge) -> CitationFigures:
    """Judge every prediction that has passages; a refusal or a missing one claims nothing.

    DataError if no row has passages.
    """
    asked = [row for row in rows if row.passages is not None]
    if not asked:
        raise DataError(f"judge {judge.name} has nothing to judge: no row carries passages")
    cited = [Cited(row.prediction or "", row.passages or ()) for row in asked]
    try:
        report = citation_report(cited, judge.judge, judge.name)
    except (JudgeError, EngineError) as error:
        nothing = bootstrap_mean([None] * len(cited))
        return CitationFigures(nothing, nothing, judge.name, len(cited), 0, len(cited), str(error))
    return CitationFigures(
        recall=bootstrap_mean([score.recall for score in report.scores]),
        precision=bootstrap_mean([score.precision for score in report.scores]),
        judge=judge.name,
        answers=len(cited),
        without_sentence=report.empty,
        unjudged=report.unjudged,
    )
