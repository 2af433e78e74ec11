"""Outcomes: what a comparison needs of each episode, read one episode at a time so that memory stays small.

Episode i of an evaluation is line i of trajectories.jsonl, so that a single one can be read again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sleuth.errors import DataError
from sleuth.evaluation.comparing.error_classes import error_class
from sleuth.evaluation.records import Key, key_of
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.metrics.answers import rules_of
from sleuth.metrics.selective import RiskCoverage, risk_coverage
from sleuth.rollouts.store import TrajectoryReader
from sleuth.types import Action, Segment, Trajectory


@dataclass(frozen=True, slots=True)
class Outcome:
    """One episode without its text."""

    line: int  # Index of its line in trajectories.jsonl.
    name: str  # A key of error_classes.CLASSES.
    confidence: float | None
    """Mean log-probability of the answer's tokens, in nats; None without an answer or log-probabilities."""
    tokens: int | None  # Tokens read and written, prompt included; None for a transcript without token ids.


def read_outcomes(folder: Path) -> dict[Key, Outcome]:
    """Every episode of an evaluation folder. Raises DataError if they cannot be read, or one occurs twice."""
    found: dict[Key, Outcome] = {}
    for line, trajectory in enumerate(TrajectoryReader(folder / TRAJECTORIES)):
        key = key_of(trajectory.question)
        if key in found:
            raise DataError(f"{folder / TRAJECTORIES}:{line + 1}: question {key[1]!r} occurs twice")
        name = error_class(trajectory, rules_of(trajectory.question.dataset))
        is_bare = any(segment.text and not segment.tokens for segment in trajectory.segments)
        tokens = None if is_bare else sum(len(segment.tokens) for segment in trajectory.segments)
        found[key] = Outcome(line, name, confidence(trajectory), tokens)
    return found


def confidence(trajectory: Trajectory) -> float | None:
    """Mean log-probability of the tokens of the last answer or refusal, at most 0; None without any."""
    action = next((a for a in reversed(trajectory.actions) if a.kind in ("answer", "refuse")), None)
    if action is None or trajectory.fault:
        return None
    segment = trajectory.segments[action.segment]
    start, end = _span(trajectory, action, segment)
    begins = (0, *segment.ends[:-1])
    spans = zip(segment.logprobs, begins, segment.ends, strict=False)
    chosen = [logprob for logprob, begin, stop in spans if begin < end and stop > start]
    # Without token offsets, or for an empty answer, the whole turn counts.
    logprobs = chosen or list(segment.logprobs)
    mean = math.fsum(logprobs) / len(logprobs) if logprobs else None
    return mean if mean is not None and math.isfinite(mean) else None


def _span(trajectory: Trajectory, action: Action, segment: Segment) -> tuple[int, int]:
    """Characters of the answer in its turn: its tag's body, else its last mention."""
    for field in reversed(trajectory.fields):
        if field.segment == action.segment and field.tag == action.kind:
            return field.start, field.end
    start = segment.text.rfind(action.text) if action.text else -1
    return (start, start + len(action.text)) if start >= 0 else (0, 0)


def selective(outcomes: Sequence[Outcome], errors: Sequence[float | None]) -> RiskCoverage | None:
    """Risk–coverage curve; an episode without confidence is least sure. None if no episode has one."""
    sure = [one.confidence for one in outcomes if one.confidence is not None]
    if not sure:
        return None
    ranked = [
        (min(sure) - 1.0 if one.confidence is None else one.confidence, error)
        for one, error in zip(outcomes, errors, strict=True)
        if error is not None
    ]
    return risk_coverage([confidence for confidence, _ in ranked], [error for _, error in ranked])
