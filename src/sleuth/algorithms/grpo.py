"""GRPO: several rollouts of one question are each other's baseline. No critic.

Shao et al. 2024, "DeepSeekMath", eqs. 3 and 4, in the on-policy form that Search-R1, Eval-RAR,
ARENA and EviOmni build on. Its fields are the points on which the papers differ: the scaling of the
group's rewards, the KL estimator, and averages over sequences or tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import pvariance
from typing import TYPE_CHECKING, Literal

from sleuth.algorithms.base import Aggregation, Algorithm, Companion, Groups, KLEstimator, Loss, TokenBatch
from sleuth.checked import Fraction, NonNegative, NonNegativeFloat, Positive
from sleuth.errors import ConfigError, RewardError
from sleuth.types import Signal

if TYPE_CHECKING:
    from torch import Tensor

Scaling = Literal["std", "std_floor", "none"]

STD_EPSILON = 1e-6
"""Added to the standard deviation, as verl and Search-R1 do."""


def group_advantages(rewards: Sequence[float], scale: Scaling = "std", std_floor: float = 0.1) -> list[float]:
    """A_i of one group.

    std: (r − mean) / (std + 1e-6), with the sample standard deviation (n − 1), as in TRL and verl;
    std_floor: (r − mean) / max(std, ε_std), EviOmni's eq. 11, with the population's (n), as in its example
    {0.49, 0.51} → 0.01; none: r − mean.
    A group of one and a group of equal rewards have advantage 0: there is nothing to compare.
    Raises RewardError for rewards that are not finite, or too far apart to be compared.
    """
    check_finite(rewards)
    count = len(rewards)
    if all(reward == rewards[0] for reward in rewards):
        return [0.0] * count
    # fsum is exact, so that the order of a group changes nothing.
    mean = math.fsum(reward / count for reward in rewards)
    centred = [reward - mean for reward in rewards]
    # hypot does not overflow where a sum of squares would.
    std = math.hypot(*sorted(centred)) / math.sqrt(count if scale == "std_floor" else count - 1)
    if not math.isfinite(std):
        raise RewardError(f"the rewards are too far apart: {list(rewards)}")
    if scale == "none":
        return centred
    divisor = max(std, std_floor) if scale == "std_floor" else std + STD_EPSILON
    return [deviation / divisor for deviation in centred]


def check_finite(rewards: Sequence[float]) -> None:
    """Raise RewardError for a reward that is not a finite number."""
    if not all(math.isfinite(reward) for reward in rewards):
        raise RewardError(f"a reward is not a finite number: {list(rewards)}")


def most_varied(rewards: Sequence[float], count: int) -> list[int]:
    """Places of the `count` rewards with the largest variance, ascending; all if there are no more than that.

    They are the highest k and the lowest count − k, for the best k (PODS, Xu et al. 2025, arXiv 2504.13818). Failures
    of a group with one success are much alike, so updating on some of them costs less and teaches almost as much.
    Raises RewardError for a reward that is not a finite number.
    """
    check_finite(rewards)
    if len(rewards) <= count:
        return list(range(len(rewards)))
    order = sorted(range(len(rewards)), key=lambda i: rewards[i])
    parts = [order[: count - k] + order[len(order) - k :] for k in range(count + 1)]
    return sorted(max(parts, key=lambda part: pvariance([rewards[i] for i in part])))


@dataclass(frozen=True)
class GRPO(Algorithm):
    """Group-relative policy optimisation."""

    group_size: Positive = 5
    """G, rollouts per question."""
    epsilon: NonNegativeFloat = 0.2
    """Ratio clip: 1 − ε … 1 + ε."""
    beta: NonNegativeFloat = 0.001
    """Weight of the KL term; 0 = none."""
    kl: KLEstimator = "k3"
    """Estimator in the loss."""
    scale: Scaling = "std"
    """How a group's rewards are scaled."""
    std_floor: NonNegativeFloat = 0.1
    """ε_std of "std_floor"."""
    negative_weight: Fraction = 1.0
    """Factor of advantages below zero; 1 = GRPO. Gu et al. 2026 (arXiv 2604.04894) weigh the two signs apart."""
    aggregation: Aggregation = "sequence"
    """Mean over sequences of token means, or over all tokens."""
    num_updates: Positive = 1
    """μ; 1 is exactly on-policy."""
    engine_ratio_max: NonNegativeFloat = 2.0
    """Bound of π_old / π_engine, by which a token's loss is multiplied if another engine sampled it; 0 = never."""
    drop_zero_variance: bool = False
    """Leave groups with equal rewards out of the update and out of its denominator (DAPO, Yu et al. 2025)."""
    train_on: NonNegative = 0
    """Most rollouts of a group that are trained on, those whose rewards vary most; 0 = all; see `most_varied`.
    Among equal failures malformed ones are taken first."""

    def cross_check(self) -> None:
        if self.scale == "std_floor" and self.std_floor == 0:
            raise ConfigError("grpo.scale='std_floor' needs std_floor > 0")
        if self.train_on == 1:
            raise ConfigError("grpo.train_on=1 leaves nothing to compare: set it to 0 or to 2 and more")

    @property
    def needs_reference(self) -> bool:
        """Only the KL term uses the reference policy."""
        return self.beta > 0

    @property
    def trained_share(self) -> float:
        return self.train_on / self.group_size if 0 < self.train_on < self.group_size else 1.0

    def signals(self, groups: Groups, companion: Companion | None = None) -> list[Signal]:
        """The group's advantage on every policy token of a trajectory.

        Unscored, faulted and invalid trajectories are left out before the group is compared.
        Raises RewardError for a reward that is not a finite number.
        """
        signals: list[Signal] = []
        for group in groups:
            usable = [(t, t.score.total) for t in group if t.score and not t.fault and not t.score.invalid]
            if self.drop_zero_variance and len({reward for _, reward in usable}) < 2:
                continue
            if self.train_on:
                # Among equal failures malformed ones come first: nothing else teaches the format, and the kept half
                # may hold none. The sample index breaks ties, so that the order of a group changes nothing.
                usable.sort(key=lambda pair: (not pair[0].malformed, pair[0].sample))
                usable = [usable[i] for i in most_varied([r for _, r in usable], self.train_on)]
            advantages = group_advantages([r for _, r in usable], self.scale, self.std_floor)
            weights = [self.negative_weight * a if a < 0 else a for a in advantages]
            pairs = zip(usable, weights, strict=True)
            signals += [Signal(t, (w,) * t.response_length) for (t, _), w in pairs if t.response_length]
        return signals

    def normaliser(self, signals: Sequence[Signal]) -> float:
        """Trajectories or policy tokens of the update, at least 1."""
        return float(max(1, len(signals))) if self.aggregation == "sequence" else super().normaliser(signals)

    def loss(self, batch: TokenBatch, normaliser: float) -> Loss:
        """Clipped surrogate plus β KL (eq. 3). Raises ConfigError if β > 0 and log π_ref is missing."""
        from sleuth.algorithms import objectives

        mask, advantages = batch.mask_N_T, batch.weights_N_T
        logprobs_N_T = objectives.where_masked(batch.logprobs_N_T, mask)
        ratio_N_T = objectives.ratio(logprobs_N_T, _masked(batch.old_logprobs_N_T, mask))
        per_token = objectives.clipped_surrogate(ratio_N_T, advantages, self.epsilon)
        if batch.engine_logprobs_N_T is not None and self.engine_ratio_max:
            old = logprobs_N_T if batch.old_logprobs_N_T is None else batch.old_logprobs_N_T
            per_token = per_token * objectives.truncated_ratio(
                old, batch.engine_logprobs_N_T, self.engine_ratio_max
            )
        if self.beta > 0:
            reference = _masked(batch.ref_logprobs_N_T, mask)
            if reference is None:
                raise ConfigError(f"grpo.beta={self.beta} needs the reference policy's log-probabilities")
            per_token = per_token + self.beta * objectives.kl_per_token(logprobs_N_T, reference, self.kl)
        clipped = objectives.is_clipped(ratio_N_T.detach(), advantages, self.epsilon)
        metrics = {
            "ratio": objectives.masked_mean(ratio_N_T.detach(), mask),
            "clip_fraction": objectives.masked_mean(clipped.float(), mask),
        }
        value = objectives.aggregate(per_token, mask, self.aggregation, normaliser, batch.lengths_N)
        return Loss(value, metrics)

    def is_idle(self, signal: Signal) -> bool:
        """Advantage 0 and no KL term; see Algorithm.is_idle."""
        return self.beta == 0 and super().is_idle(signal)


def _masked(values: Tensor | None, mask: Tensor) -> Tensor | None:
    return None if values is None else values.where(mask, 0.0)
