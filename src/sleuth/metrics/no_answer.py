"""SQuAD 2.0's no-answer probability: the best threshold with hindsight.

Source: evaluate-v2.0.py, `find_best_thresh`. The best threshold is chosen
on the questions it is measured on, so it flatters; never compare it with a score at a fixed one.
"""

from collections.abc import Sequence
from typing import NamedTuple


class NoAnswer(NamedTuple):
    """One question: the EM or F1 of its text, and the system's probability of no answer on any scale."""

    score: float
    answerable: bool
    gave_text: bool
    probability: float


class BestThreshold(NamedTuple):
    """The best mean score; answers with a higher no-answer probability count as empty."""

    score: float
    threshold: float


def best_threshold(questions: Sequence[NoAnswer]) -> BestThreshold | None:
    """The script's best threshold, ties in the order given; None without questions.

    Like the script it may cut between questions of equal probability, which no threshold can do. It also
    counts any text as wrong for an unanswerable question, "the" included, which EM takes as empty.
    """
    if not questions:
        return None
    current = best = float(sum(not question.answerable for question in questions))
    threshold = 0.0
    for question in sorted(questions, key=lambda q: q.probability):
        current += question.score if question.answerable else -float(question.gave_text)
        if current > best:
            best, threshold = current, question.probability
    return BestThreshold(best / len(questions), threshold)
