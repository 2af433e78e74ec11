"""Layout: trajectories as padded tensors behind one shared prefix, in micro-batches of bounded cost.

A group's rollouts share their prompt, and demonstrations share their instruction: computing the
common beginning once is what makes the update several times cheaper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sleuth.types import Trajectory

SHORTEST_PREFIX = 8
"""Tokens; a shorter common beginning is not worth a forward pass of its own."""


@dataclass(frozen=True, slots=True)
class Sequence_:  # noqa: N801 - typing's Sequence is in use here
    """One trajectory as tokens."""

    index: int
    """Its place in the update."""
    tokens: list[int]
    targets: list[int]
    """Positions of policy tokens, ascending; each is predicted from the position before it."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Sequences computed together."""

    sequences: list[Sequence_]
    prefix: int
    """Length of the common beginning; no policy token lies in it. 0 = computed as plain rows."""

    @property
    def num_tokens(self) -> int:
        """Tokens that go through the model, padding included."""
        longest = max(len(s.tokens) for s in self.sequences)
        return self.prefix + len(self.sequences) * (longest - self.prefix)


def sequence(index: int, trajectory: Trajectory) -> Sequence_:
    """Tokens and policy positions of a trajectory."""
    targets = [t for t, own in enumerate(trajectory.loss_mask) if own]
    # What the world said after the policy's last token decides nothing.
    return Sequence_(index, trajectory.tokens[: targets[-1] + 1] if targets else trajectory.tokens, targets)


def micro_batches(
    trajectories: Sequence[Trajectory], max_tokens: int, *, share_prefix: bool = True
) -> list[MicroBatch]:
    """Split an update; each micro-batch has at most `max_tokens` tokens, or a single sequence.

    Consecutive rollouts of one prompt stay together where they fit; neighbours are joined when
    that costs no more than computing them apart.
    """
    sequences = [sequence(i, t) for i, t in enumerate(trajectories)]
    if not share_prefix:
        return _split(sequences, max_tokens, share_prefix)
    batches: list[MicroBatch] = []
    for _, group in groupby(sequences, key=lambda s: trajectories[s.index].segments[0].tokens):
        for batch in _split(list(group), max_tokens, share_prefix):
            joined = _batch([*batches[-1].sequences, *batch.sequences], True) if batches else None
            if joined and joined.num_tokens <= min(max_tokens, batches[-1].num_tokens + batch.num_tokens):
                batches[-1] = joined
            else:
                batches.append(batch)
    return batches


def _split(sequences: list[Sequence_], max_tokens: int, share_prefix: bool) -> list[MicroBatch]:
    batches: list[MicroBatch] = []
    current: list[Sequence_] = []
    for item in sequences:
        if current and _batch([*current, item], share_prefix).num_tokens > max_tokens:
            batches.append(_batch(current, share_prefix))
            current = []
        current.append(item)
    return [*batches, _batch(current, share_prefix)] if current else batches


def _batch(sequences: list[Sequence_], share_prefix: bool) -> MicroBatch:
    if not share_prefix or len(sequences) < 2:
        return MicroBatch(sequences, 0)
    shared = min(common_prefix([s.tokens for s in sequences]), *(s.targets[0] for s in sequences))
    return MicroBatch(sequences, shared if shared >= SHORTEST_PREFIX else 0)


def common_prefix(rows: Sequence[list[int]]) -> int:
    """Length of the longest common beginning."""
    low, high = min(rows), max(rows)  # lexicographic extremes share what all share
    for i, (a, b) in enumerate(zip(low, high, strict=False)):
        if a != b:
            return i
    return min(len(low), len(high))
