"""Preference pairs: of several actions at one state, which is better, and by how much.

EVO-RAG, §3.3 and §3.4: the preference model learns from all pairs of siblings whose returns
differ by at least Δ = 0.3, the policy from one pair per state with a margin of at least δ = 0.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from sleuth.errors import RewardError
from sleuth.recipes.evo_rag.siblings import turn_of
from sleuth.types import Trajectory

ROUNDING = 1e-9
"""A difference of 0.7 − 0.4 is 0.2999…98 in binary and still counts as 0.3."""


class Candidate(NamedTuple):
    """One sibling action."""

    turn: Trajectory
    """The action alone, after its context."""
    value: float
    """What ranks it: its branch's return, or a preference model's score."""


class Pair(NamedTuple):
    """Two different actions in one context."""

    chosen: Trajectory
    rejected: Trajectory
    margin: float
    """How much more the chosen one is worth, above 0."""


def candidates_of(group: Sequence[Trajectory]) -> list[Candidate]:
    """Siblings of one state with their branches' returns; none where one of them could not be scored.

    What cannot be scored is often one kind of action, such as every search of a question without
    known gold: comparing the others alone would teach never to choose or to reject that kind.
    """
    scores = [None if t.fault or t.score is None or t.score.invalid else t.score.total for t in group]
    turns = [turn_of(trajectory, group[-1].fork) for trajectory in group]
    return [
        Candidate(turn, score)
        for turn, score in zip(turns, scores, strict=True)
        if score is not None and turn.response_length and None not in scores
    ]


def all_pairs(candidates: Sequence[Candidate], margin: float) -> list[Pair]:
    """Every pair of different actions whose values differ by at least `margin`.

    The same search or answer written with other thoughts is the same action: its branches
    differ by luck. Raises RewardError for a value that is not finite.
    """
    if bad := [c.value for c in candidates if not math.isfinite(c.value)]:
        raise RewardError(f"a sibling's value is {bad[0]}")
    ordered = [sorted(two, key=lambda c: -c.value) for two in combinations(candidates, 2)]
    return [
        Pair(better.turn, worse.turn, better.value - worse.value)
        for better, worse in ordered
        if _decision(better) != _decision(worse)
        and better.value - worse.value >= max(margin - ROUNDING, ROUNDING)
    ]


def best_pair(candidates: Sequence[Candidate], margin: float) -> Pair | None:
    """The pair that is furthest apart, the first of equal ones; None if none is `margin` apart."""
    return max(all_pairs(candidates, margin), key=lambda pair: pair.margin, default=None)


def _decision(candidate: Candidate) -> tuple[str, str]:
    (action,) = candidate.turn.actions
    return action.kind, action.text
