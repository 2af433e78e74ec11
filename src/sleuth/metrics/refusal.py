"""Refusals against answerability: does the model refuse what cannot be answered, and only that.

Each figure is a mean over the questions it applies to; for the others the value is None. A
refusal is a decision: an episode that ran out of steps, or failed, refused nothing.
"""

from __future__ import annotations


def precision(answerable: bool, refused: bool) -> float | None:
    """Of a refusal: 1.0 if the question is unanswerable, else 0.0; None if nothing was refused."""
    return float(not answerable) if refused else None


def recall(answerable: bool, refused: bool) -> float | None:
    """Of an unanswerable question: 1.0 if refused, else 0.0; None for an answerable one."""
    return None if answerable else float(refused)


def over_refusal(answerable: bool, refused: bool) -> float | None:
    """Of an answerable question: 1.0 if refused, else 0.0; None for an unanswerable one."""
    return float(refused) if answerable else None
