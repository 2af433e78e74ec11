"""Sibling branching: several actions tried at each state an episode visits.

EVO-RAG, §3.3: for each visited state, branches that take different actions are compared by
their cumulative return. One episode, the trunk, decides which states are visited; at each of its
turns N − 1 forks act anew from the very same context and go on to their own end. Forks share
the trunk's tokens, so an engine with a prefix cache computes each state once.

The paper does not say how far a branch is followed. Ours is followed to its end by one
continuation of the same policy, since the return of a single step pays nothing for a search
whose answer comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sleuth.engines.base import Engine, Sampling
from sleuth.errors import ConfigError
from sleuth.protocols.base import AgentProtocol
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.episode import Episode
from sleuth.rollouts.limits import Limits
from sleuth.rollouts.loop import model_writer, play, run_episodes
from sleuth.types import Question, Segment, Trajectory


@dataclass(frozen=True, slots=True)
class State:
    """A visited state and the branches that leave it."""

    segment: int
    """Index of the policy segment that is the candidate action, the same in every branch."""
    branches: tuple[Trajectory, ...]
    """Whole episodes with the same context before that segment; the trunk first."""

    def candidates(self) -> list[Trajectory]:
        """Of each branch the candidate alone, behind the context it was written in."""
        return [turn_of(branch, self.segment) for branch in self.branches]


def branch(
    questions: Sequence[Question],
    *,
    protocol: AgentProtocol,
    engine: Engine,
    retriever: Retriever,
    limits: Limits,
    sampling: Sampling,
    siblings: int = 4,
    seed: int = 0,
    width: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[State]:
    """Every state that one episode per question visits, each with `siblings` branches (N).

    A question whose episode failed from outside gives no state; a branch that failed stays,
    with its fault. Other arguments as in `run_episodes`.
    """
    if siblings < 2:
        raise ConfigError(f"preferences need at least 2 siblings at a state, not {siblings}")
    trunks = run_episodes(
        questions,
        protocol=protocol,
        engine=engine,
        retriever=retriever,
        limits=limits,
        sampling=sampling,
        seed=seed,
        width=width,
        on_done=on_done,
    )
    visited = [
        (trunk, index)
        for (trunk,) in trunks
        if not trunk.fault
        for index, segment in trunk.policy_segments()
        if segment.tokens
    ]
    limits = limits.within(engine.context_length)
    forks = play(
        (
            Episode.fork(trunk, index, sample, retriever, protocol, limits)
            for trunk, index in visited
            for sample in range(1, siblings)
        ),
        model_writer(engine, protocol, limits, sampling),
        engine.tokenizer,
        group_size=siblings - 1,
        width=width,
        on_done=on_done,
    )
    return [State(i, (trunk, *others)) for (trunk, i), others in zip(visited, forks, strict=True)]


def turn_of(trajectory: Trajectory, index: int) -> Trajectory:
    """One policy segment behind the context it was written in: what a preference compares and trains."""
    context = tuple(trajectory.context(index))
    action = next(a for a in trajectory.actions if a.segment == index)
    segments = (Segment("prompt", "", context), replace(trajectory.segments[index], until=-1))
    return replace(trajectory, segments=segments, actions=(replace(action, segment=1),), fields=())
