"""Refusals against answerability: does the model refuse what cannot be answered, and only that.

Each figure is a mean over the questions it applies to; for the others the value is None. A
refusal is a decision: an episode that ran out of steps, or failed, refused nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.errors import DataError


def precision(answerable: bool, refused: bool) -> float | None:
    """Of a refusal: 1.0 if the question is unanswerable, else 0.0; None if nothing was refused."""
    return float(not answerable) if refused else None


def recall(answerable: bool, refused: bool) -> float | None:
    """Of an unanswerable question: 1.0 if refused, else 0.0; None for an answerable one."""
    return None if answerable else float(refused)


def over_refusal(answerable: bool, refused: bool) -> float | None:
    """Of an answerable question: 1.0 if refused, else 0.0; None for an unanswerable one."""
    return float(refused) if answerable else None


@dataclass(frozen=True, slots=True)
class Refusals:
    """Answerability against decision over a set of questions. A figure without questions behind it is None."""

    answered_answerable: int
    refused_answerable: int
    answered_unanswerable: int
    refused_unanswerable: int
    correct: float
    """Sum of the scores of the answerable questions that were answered."""

    @property
    def precision(self) -> float | None:
        """Share of the refusals that were right."""
        return _share(self.refused_unanswerable, self.refused_unanswerable + self.refused_answerable)

    @property
    def recall(self) -> float | None:
        """Share of the unanswerable questions that were refused."""
        return _share(self.refused_unanswerable, self.refused_unanswerable + self.answered_unanswerable)

    @property
    def f1(self) -> float | None:
        """2TP / (2TP + FP + FN) of refusing; None only if nothing was refused and all is answerable."""
        wrong = self.refused_answerable + self.answered_unanswerable
        return _share(2 * self.refused_unanswerable, 2 * self.refused_unanswerable + wrong)

    @property
    def over_refusal(self) -> float | None:
        """Share of the answerable questions that were refused."""
        return _share(self.refused_answerable, self.refused_answerable + self.answered_answerable)

    @property
    def answered_precision(self) -> float | None:
        """Mean score of what was answered; an answer to an unanswerable question scores 0."""
        return _share(self.correct, self.answered_answerable + self.answered_unanswerable)

    @property
    def answered_recall(self) -> float | None:
        """Mean score of the answerable questions; a refusal scores 0."""
        return _share(self.correct, self.answered_answerable + self.refused_answerable)

    @property
    def answered_f1(self) -> float | None:
        """2 · correct / (answered + answerable): answerable-F1; None if nothing is answerable and nothing was answered."""
        answered = self.answered_answerable + self.answered_unanswerable
        return _share(2 * self.correct, answered + self.answered_answerable + self.refused_answerable)


def refusals(answerable: Sequence[bool], refused: Sequence[bool], scores: Sequence[float]) -> Refusals:
    """Count decisions; `scores`, in [0, 1], are those of the answers and ignored where refused or unanswerable.

    DataError for unequal lengths.
    """
    if not len(answerable) == len(refused) == len(scores):
        raise DataError(f"{len(answerable)} labels, {len(refused)} decisions and {len(scores)} scores")
    rows = list(zip(answerable, refused, scores, strict=True))
    return Refusals(
        answered_answerable=sum(a and not r for a, r, _ in rows),
        refused_answerable=sum(a and r for a, r, _ in rows),
        answered_unanswerable=sum(not a and not r for a, r, _ in rows),
        refused_unanswerable=sum(not a and r for a, r, _ in rows),
        correct=float(sum(score for a, r, score in rows if a and not r)),
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
