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
from sleuth.metrics.citations import CitationScore, Cited, score_citations


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
    failure = ""
    try:
        scores = score_citations(cited, judge.judge)
    except (JudgeError, EngineError) as error:
        failure, scores = str(error), [CitationScore(None, None, 1, 0)] * len(cited)
    counts = {
        "judge": judge.name,
        "answers": len(cited),
        "without_sentence": sum(not score.sentences for score in scores),
        "unjudged": sum(score.recall is None and score.sentences > 0 for score in scores),
        "failure": failure,
    }
    means = {
        "citation_recall": bootstrap_mean([score.recall for score in scores]),
        "citation_precision": bootstrap_mean([score.precision for score in scores]),
    }
    return ExtraScores(means, {"citations": counts})
