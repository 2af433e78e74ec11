"""Reward: trajectory in, score out. Reads only what the policy wrote, never the prompt or passages' tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sleuth.checked import Checked
from sleuth.engines.base import Engine
from sleuth.types import Score, Trajectory


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out about one trajectory elsewhere, so that it need not be generated or judged again."""

    rationale_answer: str | None = None
    """The answer given from the rationale without the evidence (EviOmni's o_r)."""
    evidence_answer: str | None = None
    """The answer given from the evidence alone (EviOmni's o_e)."""
    entailment: float | None = None
    """P(entailment) of "this is the answer" by the last note, in [0, 1] (EviNote-RAG's EQR)."""


class Reward(Checked, ABC):
    """Scores a batch of trajectories."""

    by_step: ClassVar[bool] = False
    """True: it scores every action, so that Score.steps says how the total came about."""

    @abstractmethod
    def score(
        self,
        trajectories: Sequence[Trajectory],
        engine: Engine | None = None,
        findings: Sequence[Findings] | None = None,
    ) -> list[Score]:
        """One Score per trajectory, in order.

        `engine` holds the current policy, for rewards that need further generations; rewards
        that need none ignore it. `findings`, one per trajectory where given, hold what need not
        be asked again. A judgement that cannot be had gives Score.invalid, never 0.
        """
