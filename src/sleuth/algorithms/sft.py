"""SFT: maximum likelihood of the policy's own tokens. For warm starts on demonstrations."""

from dataclasses import dataclass

from sleuth.algorithms.base import Algorithm, Companion, Groups
from sleuth.types import Signal


@dataclass(frozen=True)
class SFT(Algorithm):
    """−log π(token), averaged over policy tokens; text of the environment has no weight."""

    group_size = 1
    num_updates = 1

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """Weight 1 on every policy token of every sound trajectory."""
        return [
            Signal(t, (1.0,) * t.response_length)
            for group in groups
            for t in group
            if t.response_length and not t.fault and not (t.score and t.score.invalid)
        ]
