"""Citation scores of a predictions file: ALCE's recall and precision of answers that cite passages as [1], [2].

A judge that fails costs the answers it should have judged: they have no figure and are counted, never scored 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sleuth.errors import DataError, EngineError, JudgeError
from sleuth.evaluation.answer_files.extra_scores import ExtraScores
from sleuth.evaluation.answer_files.predictions import Row
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.judges.base import Judge
from sleuth.metrics.citations import Cited, citation_report


class NamedJudge(NamedTuple):
    """A judge and its name in results."""

    name: str
    judge: Judge


def citation_scores(rows: Sequence[Row], judge: NamedJudge) -> ExtraScores:
    """Judge every prediction that has passages; a refusal or a missing one claims nothing.

    Raises DataError if no row has passages.
    """
    cited = [Cited(row.prediction or "", row.passages) for row in rows if row.passages is not None]
    if not cited:
        raise DataError(f"judge {judge.name} has nothing to judge: no row carries passages")
    recall: list[float | None] = [None] * len(cited)
    precision = recall
    counts = {"without_sentence": 0, "unjudged": len(cited), "failure": ""}
    try:
        report = citation_report(cited, judge.judge, judge.name)
    except (JudgeError, EngineError) as error:
        counts["failure"] = str(error)
    else:
        recall = [score.recall for score in report.scores]
        precision = [score.precision for score in report.scores]
        counts |= {"without_sentence": report.empty, "unjudged": report.unjudged}
    return ExtraScores(
        {"citation_recall": bootstrap_mean(recall), "citation_precision": bootstrap_mean(precision)},
        {"citations": {"judge": judge.name, "answers": len(cited), **counts}},
    )
