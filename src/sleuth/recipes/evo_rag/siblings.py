"""Sibling branching: several actions tried at each state an episode visits.

EVO-RAG, §3.3: for each visited state, branches that take different actions are compared by
their cumulative return. One episode, the trunk, decides which states are visited. At each of its
turns N − 1 forks act again from the same context and continue to their own end. Forks share
the trunk's tokens, so an engine with a prefix cache computes each state once.

The paper does not say how far a branch is followed. Ours is followed to its end by the same
policy: the return of a single step pays nothing for a search whose answer comes later.

§3.3 and §3.4: the preference model learns from all pairs of siblings whose returns differ by at
least Δ = 0.3, the policy from one pair per state with a margin of at least δ = 0.2.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

from sleuth.episodes.world import World
from sleuth.errors import RewardError
from sleuth.rollouts.run import OnDone, play_all, roll_out
from sleuth.types import Question, Segment, Trajectory

ROUNDING = 1e-9
"""A difference of 0.7 − 0.4 is 0.2999…98 in binary and still counts as 0.3."""


def branch(
    questions: Sequence[Question],
    world: World,
    siblings: int,
    *,
    seed: int = 0,
    width: int = 64,
    on_done: OnDone | None = None,
) -> list[list[Trajectory]]:
    """Groups of `siblings` episodes (N), one group for every state that one episode a question visits.

    Each group is the trunk and its forks, whole episodes with the same context before segment
    `fork`. A trunk that failed gives no group; a failed fork stays, with its fault.
    """
    trunks = roll_out(questions, world, seed=seed, width=width, on_done=on_done)
    visited = [
        (trunk, index)
        for (trunk,) in trunks
        if not trunk.fault
        for index, segment in trunk.policy_segments()
        if segment.tokens
    ]
    count = siblings - 1
    forks = (partial(fork, world, *state, sample) for state in visited for sample in range(1, siblings))
    played = play_all(forks, width=width, on_done=on_done)
    return [[trunk, *played[i * count : (i + 1) * count]] for i, (trunk, _) in enumerate(visited)]


async def fork(world: World, trunk: Trajectory, index: int, sample: int) -> Trajectory:
    """An episode that acts again where the trunk wrote segment `index`, and continues to its own end."""
    record = world.record(trunk.question, sample)
    record.resume(trunk, index, world.protocol.prompt(record.question, trunk.segments[0].hits))
    return await world.finish(record)


def turn_of(trajectory: Trajectory, index: int) -> Trajectory:
    """One policy segment after the context it was written in, to be compared and trained."""
    context = tuple(trajectory.context(index))
    action = next(a for a in trajectory.actions if a.segment == index)
    segments = (Segment("prompt", "", context), replace(trajectory.segments[index], until=-1))
    return replace(trajectory, segments=segments, actions=(replace(action, segment=1),), fields=())


class Candidate(NamedTuple):
    """One sibling action."""

    turn: Trajectory
    """The action alone, after its context."""
    value: float
    """Its branch's return, or a preference model's score."""


class Pair(NamedTuple):
    """Two different actions in one context."""

    chosen: Trajectory
    rejected: Trajectory
    margin: float
    """How much more the chosen one is worth, above 0."""


def candidates_of(group: Sequence[Trajectory]) -> list[Candidate]:
    """Siblings of one state with their branches' returns; none where one of them could not be scored.

    Often one kind of action cannot be scored, such as every search of a question without known gold.
    Comparing the others alone would teach never to choose or to reject that kind.
    """
    scores = [None if t.fault or t.score is None or t.score.invalid else t.score.total for t in group]
    known = [score for score in scores if score is not None]
    if len(known) < len(group):
        return []  # before any turn is read: a fork that failed may have none
    turns = [turn_of(trajectory, group[-1].fork) for trajectory in group]
    return [Candidate(turn, score) for turn, score in zip(turns, known, strict=True) if turn.response_length]


def all_pairs(candidates: Sequence[Candidate], margin: float) -> list[Pair]:
    """Every pair of different actions whose values differ by at least `margin`.

    The same search or answer after other thoughts is the same action: its branches differ by luck.
    Raises RewardError for a value that is not finite.
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
