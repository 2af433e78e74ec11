"""DPO on single steps: of two actions in one context, the better one becomes more likely.

EVO-RAG, §3.4: L = −log σ(β [log π(x⁺) − log π(x⁻)]), β = 0.1, as printed (`reference_free`);
with a reference policy as in Rafailov et al. 2023, eq. 7, log π / π_ref takes the place of log π.
log π(x) sums over the tokens of the action that the model wrote; context carries no loss.

Its gradient is −β σ(−β h) [∇ log π(x⁺) − ∇ log π(x⁻)], where h is the bracket: a weight on each
token. So pairs go through the same update as every other method, in any micro-batches.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Annotated, Any, Literal

from msgspec import Meta

from sleuth.algorithms.base import Algorithm, Companion, Groups
from sleuth.checked import NonNegativeFloat, Positive, PositiveFloat
from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.recipes.evo_rag.siblings import best_pair, branch, candidates_of
from sleuth.rollouts.run import OnDone
from sleuth.scale import Scale
from sleuth.types import Question, Signal, Trajectory


@dataclass(frozen=True)
class DPO(Algorithm):
    """Step-level preferences among siblings, learnt in alternation with a preference model."""

    group_size: Annotated[int, Meta(ge=2)] = 4
    """N, sibling actions tried at each visited state."""
    beta: PositiveFloat = 0.1
    """β."""
    reference_free: bool = False
    """True: the formula as printed, without a reference policy."""
    margin: NonNegativeFloat = 0.2
    """δ, least difference of a pair that the policy learns from; one pair per state."""
    model_margin: NonNegativeFloat = 0.3
    """Δ, least difference of returns of a pair that the preference model learns from."""
    preference: Literal["return", "reward_model"] = "return"
    """Ranking of the policy's pairs: by the branches' returns (§3.4, step ii), or by the mean of the preference
    model's heads (the abstract: "Direct Preference Optimization over a multi-head reward model")."""
    heads: Literal[1, 7] = 7
    """Heads of the preference model: one per reward, or a single one on the total return (§3.3's comparison)."""
    update_pairs: Positive = 64
    """Pairs per optimiser step of the policy (the paper's effective batch)."""
    head_lr: NonNegativeFloat = 1e-3
    """Learning rate of the preference model's heads."""

    num_updates = 1

    @property
    def needs_reference(self) -> bool:
        return not self.reference_free

    @property
    def reweighs(self) -> bool:
        """DPO's weights follow from the present log-probabilities of both sides."""
        return True

    def rollouts_per_question(self, max_steps: int) -> int:
        """A trunk and, at each of its turns, N − 1 forks; in both stages."""
        return 2 * (1 + (self.group_size - 1) * max_steps)

    def check(self, scale: Scale) -> None:
        """ConfigError for a schedule, since the number of updates is not known beforehand."""
        if scale.lr_schedule != "constant" or scale.lr_warmup:
            raise ConfigError("the number of updates is not known beforehand: lr_schedule must be constant")

    def companion(self, policy: Any, scale: Scale) -> Companion | None:
        """The preference model of §3.3."""
        from sleuth.recipes.evo_rag.preference_model import PreferenceModel

        return PreferenceModel(policy, self, scale)

    def collect(
        self, questions: Sequence[Question], world: World, *, seed: int, width: int, on_done: OnDone
    ) -> list[list[Trajectory]]:
        """Siblings of every state that one episode per question visits; see siblings.branch."""
        return branch(questions, world, self.group_size, seed=seed, width=width, on_done=on_done)

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """The best pair of every state, as two signals: +1 on each token of x⁺, −1 on each of x⁻; see `weigh`."""
        ranked = [found for group in groups if (found := candidates_of(group))]
        if self.preference == "reward_model":
            assert companion is not None
            ranked = companion.rank(ranked)  # type: ignore[attr-defined]
        pairs = [pair for each in ranked if (pair := best_pair(each, self.margin)) is not None]
        return signals_of([(pair.chosen, pair.rejected) for pair in pairs])

    def batches(self, signals: Sequence[Signal], seed: int) -> list[Sequence[Signal]]:
        """Shuffled batches of `update_pairs` pairs."""
        order = list(range(len(signals) // 2))
        random.Random(seed).shuffle(order)
        size = self.update_pairs
        chosen = [order[start : start + size] for start in range(0, len(order), size)]
        return [[signals[2 * pair + side] for pair in batch for side in (0, 1)] for batch in chosen]

    def weigh(
        self, signals: Sequence[Signal], logprobs: Sequence[float], ref_logprobs: Sequence[float] | None
    ) -> tuple[list[Signal], dict[str, float]]:
        """Weights ± β σ(−β h) of each pair, and the loss, accuracy and margin before the update."""
        references = ref_logprobs or [0.0] * len(logprobs)
        ratios = [own - reference for own, reference in zip(logprobs, references, strict=True)]
        logits = [self.beta * (x - y) for x, y in zip(ratios[::2], ratios[1::2], strict=True)]
        weighed = [
            replace(signal, weights=tuple(self.beta * sigmoid(-logit) * w for w in signal.weights))
            for logit, pair in zip(logits, zip(signals[::2], signals[1::2], strict=True), strict=True)
            for signal in pair
        ]
        figures = {
            "loss": fmean(-log_sigmoid(logit) for logit in logits),
            "pairs": float(len(logits)),
            "pair_accuracy": fmean(logit > 0 for logit in logits),
            "margin": fmean(logits) / self.beta,
        }
        return weighed, figures

    def normaliser(self, signals: Sequence[Signal]) -> float:
        """Pairs of the update, at least 1: with the weights of `weigh`, `loss` has the mean DPO loss's gradient."""
        return max(1.0, len(signals) / 2)


def signals_of(pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Signal]:
    """Two signals a pair: +1 on each token of x⁺, then −1 on each of x⁻."""
    return [
        Signal(side, (sign,) * side.response_length)
        for pair in pairs
        for side, sign in zip(pair, (1.0, -1.0), strict=True)
    ]


def log_sigmoid(x: float) -> float:
    """log σ(x) without overflow; the DPO loss of a pair is −log σ(β h), log 2 where both sides are equally likely."""
    return -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def sigmoid(x: float) -> float:
    """1 / (1 + e^−x) without overflow."""
    return math.exp(log_sigmoid(x))
