"""Anatomy: what only the episodes themselves tell, read once, one at a time: outcome, confidence, length.

Episode i of an evaluation is line i of its records, so that single ones can be read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sleuth.errors import DataError
from sleuth.evaluation.comparing.confidence import confidence
from sleuth.evaluation.comparing.error_classes import CLASSES, error_class
from sleuth.evaluation.records import Key, key_of
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.evaluation.settings import rules_of
from sleuth.metrics.selective import RiskCoverage, risk_coverage
from sleuth.rollouts.store import TrajectoryReader
from sleuth.types import Trajectory


@dataclass(frozen=True, slots=True)
class Anatomy:
    """One episode, without its text."""

    line: int
    """Its place in trajectories.jsonl."""
    outcome: str
    """A name in error_classes.CLASSES."""
    confidence: float | None
    tokens: int | None
    """Tokens read and written, prompt included; None for a transcript without token ids."""


def dissect(folder: Path) -> dict[Key, Anatomy]:
    """Every episode of an evaluation folder. Raises DataError if they cannot be read, or one occurs twice."""
    found: dict[Key, Anatomy] = {}
    for line, trajectory in enumerate(TrajectoryReader(folder / TRAJECTORIES)):
        key = key_of(trajectory.question)
        if key in found:
            raise DataError(f"{folder / TRAJECTORIES}:{line + 1}: question {key[1]!r} occurs twice")
        found[key] = Anatomy(
            line=line,
            outcome=error_class(trajectory, rules_of(trajectory.question.dataset)),
            confidence=confidence(trajectory),
            tokens=_tokens(trajectory),
        )
    return found


def _tokens(trajectory: Trajectory) -> int | None:
    if any(segment.text and not segment.tokens for segment in trajectory.segments):
        return None
    return sum(len(segment.tokens) for segment in trajectory.segments)


def outcomes(found: Sequence[Anatomy]) -> dict[str, int]:
    """How many episodes came to which outcome, every class named, in order."""
    counts = Counter(one.outcome for one in found)
    return {name: counts[name] for name in CLASSES}


def selective(found: Sequence[Anatomy], errors: Sequence[float | None]) -> RiskCoverage | None:
    """The risk–coverage curve; None if no episode has a confidence.

    An episode without one answered nothing (or kept no log-probabilities), and is the least sure of all;
    a question that is not scored has no place.
    """
    known = [one.confidence for one in found if one.confidence is not None]
    if not known:
        return None
    placed = [
        (min(known) - 1.0 if one.confidence is None else one.confidence, error)
        for one, error in zip(found, errors, strict=True)
        if error is not None
    ]
    return risk_coverage([sure for sure, _ in placed], [error for _, error in placed])
