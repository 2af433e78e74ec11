"""Rejection sampling: fine-tune on the policy's own successful episodes.

RAFT (Dong et al. 2023) and STaR (Zelikman et al. 2022): sample several episodes a question, keep those
with enough reward, and maximise their likelihood. No baseline, no negative examples.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from sleuth.algorithms.base import Companion, Groups
from sleuth.algorithms.sft import SFT
from sleuth.checked import Positive
from sleuth.types import Signal, Trajectory


@dataclass(frozen=True)
class RejectionSampling(SFT):
    """Supervised fine-tuning on episodes that earned at least `threshold`."""

    group_size: Positive = 8
    """Episodes sampled per question."""
    num_updates: Positive = 1
    """Passes over the kept episodes."""
    threshold: float = 1.0
    """Least reward of a kept episode."""
    keep: Annotated[int, Meta(ge=1)] = 2
    """Most kept episodes a question, different from one another: the first, since the shortest search less."""

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """Weight 1 on the policy tokens of kept episodes; a question that always succeeds teaches nothing new."""
        kept: list[Trajectory] = []
        for group in groups:
            sound = [t for t in group if t.score and not t.fault and not t.score.invalid]
            good = [t for t in sound if t.score and t.score.total >= self.threshold and t.response_length]
            if len(good) == len(sound):
                continue
            distinct = {tuple(s.text for _, s in t.policy_segments()): t for t in good}
            kept += list(distinct.values())[: self.keep]
        return [Signal(t, (1.0,) * t.response_length) for t in kept]
