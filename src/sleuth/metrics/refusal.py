"""Refusals against answerability: whether a system refuses unanswerable questions, and only these.

A refusal is a decision: an episode that ran out of steps, or failed, refused nothing. A share of nothing is None.
"""

from collections.abc import Sequence


def refusal(answerable: bool, refused: bool) -> dict[str, float | None]:
    """Precision, recall and over-refusal of one question: 0, 1, or None where it does not apply."""
    return {
        "refusal_precision": float(not answerable) if refused else None,
        "refusal_recall": None if answerable else float(refused),
        "over_refusal": float(refused) if answerable else None,
    }


def refusal_figures(
    answerable: Sequence[bool], refused: Sequence[bool], scores: Sequence[float]
) -> dict[str, float | None]:
    """Counts of answerability × decision, and shares in [0, 1], over a set of questions.

    precision, recall, f1: of refusing. over_refusal: share of the answerable questions that were refused.
    answered_precision, answered_recall, answered_f1: Σ score of the answered answerable questions over the
    answered ones, over the answerable ones, and 2 · Σ over both. `scores` are those of the answers, in [0, 1].
    """
    rows = list(zip(answerable, refused, scores, strict=True))
    right, wrongly = sum(not a and r for a, r, _ in rows), sum(a and r for a, r, _ in rows)
    refusals, unanswerable = right + wrongly, sum(not a for a, _, _ in rows)
    correct = float(sum(score for a, r, score in rows if a and not r))
    answers, questions = len(rows) - refusals, len(rows) - unanswerable
    return {
        "answered_answerable": questions - wrongly,
        "refused_answerable": wrongly,
        "answered_unanswerable": unanswerable - right,
        "refused_unanswerable": right,
        "precision": _share(right, refusals),
        "recall": _share(right, unanswerable),
        "f1": _share(2 * right, refusals + unanswerable),
        "over_refusal": _share(wrongly, questions),
        "answered_precision": _share(correct, answers),
        "answered_recall": _share(correct, questions),
        "answered_f1": _share(2 * correct, answers + questions),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
