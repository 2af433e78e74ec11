"""DPO on single steps: of two actions in one context, the better one becomes more likely.

EVO-RAG, §3.4: L = −log σ(β [log π(x⁺) − log π(x⁻)]), β = 0.1, as printed (`reference_free`);
with a reference policy as in Rafailov et al. 2023, eq. 7, log π / π_ref takes the place of log π.
log π(x) sums over the tokens of the action that the model wrote; context carries no loss.

Its gradient is −β σ(−β h) [∇ log π(x⁺) − ∇ log π(x⁻)], where h is the bracket: a weight on each
token. So pairs go through the same update as every other method, in any micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from sleuth.algorithms.base import Algorithm, Loss, TokenBatch
from sleuth.checked import NonNegative, NonNegativeFloat, Positive, PositiveFloat
from sleuth.errors import TrainingError
from sleuth.types import Signal, Trajectory

if TYPE_CHECKING:
    from torch import Tensor


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
    """What ranks the policy's pairs: the branches' returns, or the mean of the preference model's heads."""
    update_pairs: Positive = 64
    """Pairs per optimiser step of the policy (the paper's effective batch)."""
    head_lr: NonNegativeFloat = 1e-3
    """Learning rate of the preference model's heads."""
    patience: Positive = 2
    """Cycles without a better dev EM after which a stage ends."""
    questions: NonNegative = 0
    """Training questions that are used, drawn once by the run's seed; 0 = all."""
    dev_questions: Positive = 100
    """Training questions set aside for that EM, so that no checkpoint is chosen on evaluation items."""

    num_updates = 1

    def rollouts_per_question(self, max_steps: int) -> int:
        """A trunk and, at each of its turns, N − 1 forks; in both stages."""
        return 2 * (1 + (self.group_size - 1) * max_steps)

    @property
    def needs_reference(self) -> bool:
        """Not as printed."""
        return not self.reference_free

    def signals(self, groups: Sequence[Sequence[Trajectory]]) -> list[Signal]:
        """Each group is (x⁺, x⁻): +1 on every token of the first, −1 on the second; see `weigh`."""
        signals = []
        for chosen, rejected in groups:
            signals += [
                Signal(chosen, (1.0,) * chosen.response_length),
                Signal(rejected, (-1.0,) * rejected.response_length),
            ]
        return signals

    def weigh(self, signals: Sequence[Signal], logits: Sequence[float]) -> list[Signal]:
        """The signals with DPO's weights ± β σ(−β h); `logits` holds β h of each pair, from `pair_logits`."""
        if 2 * len(logits) != len(signals):
            raise TrainingError(f"{len(logits)} pairs but {len(signals)} sides")
        factors = [self.beta * sigmoid(-logit) for logit in logits for _ in range(2)]
        return [
            replace(signal, weights=tuple(factor * w for w in signal.weights))
            for signal, factor in zip(signals, factors, strict=True)
        ]

    def normaliser(self, signals: Sequence[Signal]) -> float:
        """Pairs of the update, at least 1."""
        return max(1.0, len(signals) / 2)

    def loss(self, batch: TokenBatch, normaliser: float) -> Loss:
        """−Σ w log π / pairs: with the weights of `weigh` its gradient is that of the mean DPO loss."""
        from sleuth.algorithms import objectives

        per_token = -batch.weights_N_T * objectives.where_masked(batch.logprobs_N_T, batch.mask_N_T)
        return Loss(objectives.aggregate(per_token, batch.mask_N_T, "token", normaliser), {})


def pair_logits(logprobs_P_2: Tensor, ref_logprobs_P_2: Tensor | None = None, *, beta: float = 0.1) -> Tensor:
    """β h of P pairs, [P]: log-probabilities of whole actions, (x⁺, x⁻) in the last dimension."""
    ratios = logprobs_P_2 if ref_logprobs_P_2 is None else logprobs_P_2 - ref_logprobs_P_2
    return beta * (ratios[..., 0] - ratios[..., 1])


def dpo_loss(logits_P: Tensor) -> Tensor:
    """−log σ(β h) of each pair, [P]; log 2 where both sides are equally likely."""
    import torch

    return -torch.nn.functional.logsigmoid(logits_P)


def sigmoid(x: float) -> float:
    """1 / (1 + e^−x) without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
