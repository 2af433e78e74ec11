"""The curriculum's weights: how much each of the seven step rewards counts at each step of an episode.

EVO-RAG, Table 1 and §3.6: w_k(t) = (1 − p) w_early + p w_late with p = t / T_max. Stage 1
(Discovery) goes from start to mid, stage 2 (Refinement) from mid to end. In the paper's text
the weight of the retrieval action penalty rises from 0.4 to 1.2, in Table 1 it falls. We follow the
table; the recipe evo-rag/rising-action-penalty follows the text.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from sleuth.checked import Checked, NonNegativeFloat, Positive

Schedule = Literal["none", "two-stage", "time-dynamic"]
Anchors = tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat]
"""Start, mid and end weight of one step reward."""
Part = Literal["retrieval", "retrieval_action", "overlap", "backtrack", "refusal", "step", "answer"]
PARTS = get_args(Part)
"""The seven step rewards, in the order of the paper's weight vector (β, λ, γ, δ, ρ, η, κ)."""


@dataclass(frozen=True, slots=True)
class Curriculum(Checked):
    """Weights as (start, mid, end), and how an episode moves through them.

    none: no curriculum, the end weights throughout (κ = 1). two-stage: constant inside a stage,
    the weights with which training starts in stage 1 and those with which it ends in stage 2.
    time-dynamic: interpolated inside every episode.
    """

    schedule: Schedule = "time-dynamic"
    stage: Annotated[int, Meta(ge=1, le=2)] = 1
    """1 = Discovery, 2 = Refinement."""
    max_steps: Positive = 20
    """T_max, the episode's step limit: p = t / T_max reaches 1 at the last step that is possible."""
    retrieval: Anchors = (2.0, 1.0, 0.5)
    retrieval_action: Anchors = (1.5, 0.8, 0.4)
    overlap: Anchors = (0.1, 0.5, 1.2)
    backtrack: Anchors = (0.3, 0.5, 1.0)
    refusal: Anchors = (0.5, 0.5, 0.5)
    step: Anchors = (0.02, 0.05, 0.10)
    answer: Anchors = (0.05, 0.10, 1.00)

    needed: ClassVar[tuple[str, ...]] = PARTS
    """Keys that a curriculum in JSON must have: a weight left out by mistake would silently be Table 1's."""

    def progress(self, step: int) -> float:
        """p(t) = t / T_max for step t = 1, 2, …; 1 from the last step on."""
        return min(1.0, step / self.max_steps)

    def weights(self, step: int) -> dict[str, float]:
        """w_k(t) of every part at step t = 1, 2, …"""
        return {part: self._weight(getattr(self, part), self.progress(step)) for part in PARTS}

    def _weight(self, anchors: Anchors, p: float) -> float:
        start, mid, end = anchors
        if self.schedule == "none":
            return end
        early, late = (start, mid) if self.stage == 1 else (mid, end)
        if self.schedule == "two-stage":
            return start if self.stage == 1 else end
        return (1 - p) * early + p * late
