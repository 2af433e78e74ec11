"""Sibling branching: several actions tried at each state an episode visits.

EVO-RAG, §3.3: for each visited state, branches that take different actions are compared by
their cumulative return. One episode, the trunk, decides which states are visited; at each of its
turns N − 1 forks act anew from the very same context and continue to their own end. Forks share
the trunk's tokens, so an engine with a prefix cache computes each state once.

The paper does not say how far a branch is followed. Ours is followed to its end by one
continuation of the same policy, since the return of a single step pays nothing for a search
whose answer comes later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.rollouts.run import OnDone, play_all, roll_out
from sleuth.types import Question, Segment, Trajectory


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
    if siblings < 2:
        raise ConfigError(f"preferences need at least 2 siblings at a state, not {siblings}")
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
    """An episode that acts anew where the trunk wrote segment `index`, and continues to its own end."""
    record = world.record(trunk.question, sample)
    record.resume(trunk, index, world.protocol.prompt(record.question, trunk.segments[0].hits))
    return await world.finish(record)


def turn_of(trajectory: Trajectory, index: int) -> Trajectory:
    """One policy segment after the context it was written in: what a preference compares and trains."""
    context = tuple(trajectory.context(index))
    action = next(a for a in trajectory.actions if a.segment == index)
    segments = (Segment("prompt", "", context), replace(trajectory.segments[index], until=-1))
    return replace(trajectory, segments=segments, actions=(replace(action, segment=1),), fields=())
