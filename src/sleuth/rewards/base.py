"""Reward: trajectory in, score out. Reads only what the policy wrote, never the prompt or passages' tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sleuth.engines.base import Engine
from sleuth.types import Score, Trajectory


class Reward(ABC):
    """Scores a batch of trajectories."""

    @abstractmethod
    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """One Score per trajectory, in order.

        `engine` holds the current policy, for rewards that need further generations; rewards
        that need none ignore it. A judgement that cannot be had gives Score.invalid, never 0.
        """
