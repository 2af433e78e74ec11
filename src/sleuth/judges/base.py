"""Judge: does a text support a claim? A verdict that cannot be had is None, never no."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Judge(ABC):
    """Judges (premise, hypothesis) pairs."""

    @abstractmethod
    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails hypothesis) in [0, 1] for each pair, in order; None where there is no valid verdict.

        Raises JudgeError if the judge as a whole cannot be reached or loaded.
        """
