"""Objective functions: pure, per token, separate from any trainer. Shapes: N trajectories, T tokens.

Every function takes a mask and gives finite numbers for an empty one. Sources: PPO (Schulman et
al. 2017, eq. 7); GRPO (Shao et al. 2024, eqs. 3-4); KL estimators k2, k3 (Schulman 2020,
"Approximating KL divergence").
"""

from typing import Literal

import torch
from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this before exp or square: one improbable token must not make the loss infinite."""


def kl_per_token(logprobs_N_T: Tensor, ref_logprobs_N_T: Tensor, estimator: Literal["k2", "k3"]) -> Tensor:
    """Per-token estimate of KL(π ‖ π_ref) from samples of π, shape [N, T].

    With d = log π − log π_ref:  k2 = ½ d²;  k3 = exp(−d) + d − 1. As a loss, k2 has the gradient of
    the reverse KL. There is no k1 = d, whose expected gradient on policy is zero.
    """
    d = _clamped(logprobs_N_T - ref_logprobs_N_T)
    return 0.5 * d.square() if estimator == "k2" else torch.exp(-d) + d - 1


def ratio(logprobs_N_T: Tensor, old_logprobs_N_T: Tensor | None) -> Tensor:
    """π_θ / π_old per token; exactly 1 with the gradient of log π_θ when `old` is None (on-policy)."""
    old = logprobs_N_T.detach() if old_logprobs_N_T is None else old_logprobs_N_T
    return _clamped(logprobs_N_T - old).exp()


def truncated_ratio(old_logprobs_N_T: Tensor, engine_logprobs_N_T: Tensor, bound: float) -> Tensor:
    """min(π_old / π_engine, bound) per token, without gradient; 1 where the engine's is NaN.

    Corrects for tokens that were sampled by an engine whose probabilities differ from the trainer's
    (Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training").
    """
    log_ratio = (old_logprobs_N_T - engine_logprobs_N_T).detach().nan_to_num(nan=0.0)
    return _clamped(log_ratio).exp().clamp(max=bound)


def clipped_surrogate(ratio_N_T: Tensor, advantages_N_T: Tensor, epsilon: float) -> Tensor:
    """−min(r A, clip(r, 1−ε, 1+ε) A), to be minimised, shape [N, T] (PPO, eq. 7)."""
    clipped = ratio_N_T.clamp(1 - epsilon, 1 + epsilon)
    return -torch.minimum(ratio_N_T * advantages_N_T, clipped * advantages_N_T)


def is_clipped(ratio_N_T: Tensor, advantages_N_T: Tensor, epsilon: float) -> Tensor:
    """Where the clip is active, so that the token has no policy gradient; bool [N, T]."""
    too_low = (ratio_N_T < 1 - epsilon) & (advantages_N_T < 0)
    too_high = (ratio_N_T > 1 + epsilon) & (advantages_N_T > 0)
    return too_low | too_high


def aggregate(
    values_N_T: Tensor,
    mask_N_T: Tensor,
    how: Literal["sequence", "token"],
    normaliser: float,
    lengths_N: Tensor | None = None,
) -> Tensor:
    """A scalar from per-token values.

    "sequence": Σ_i (mean over the tokens of i) / normaliser, normaliser = number of trajectories
    (GRPO, eq. 3). "token": Σ over all tokens / normaliser, normaliser = number of policy tokens
    (DAPO, eq. 8). `lengths_N`: tokens that each row's mean is over; default those of its mask.
    """
    values_N_T = where_masked(values_N_T, mask_N_T)
    if how == "sequence":
        lengths_N = mask_N_T.sum(-1) if lengths_N is None else lengths_N
        return (values_N_T.sum(-1) / lengths_N.clamp(min=1)).sum() / normaliser
    return values_N_T.sum() / normaliser


def masked_mean(values_N_T: Tensor, mask_N_T: Tensor) -> float:
    """Mean over the mask as a plain number; 0 for an empty mask."""
    return float(where_masked(values_N_T, mask_N_T).sum() / mask_N_T.sum().clamp(min=1))


def entropy(logprobs: Tensor) -> Tensor:
    """Entropy in nats of log-probabilities over the last dimension, [..., V] → [...]; one of −∞ adds 0."""
    finite = logprobs.clamp(min=torch.finfo(logprobs.dtype).min)
    return -(logprobs.exp() * finite).sum(dim=-1)


def where_masked(values_N_T: Tensor, mask_N_T: Tensor) -> Tensor:
    """The values under the mask and 0 elsewhere, so that a NaN on padding reaches neither loss nor gradient."""
    return torch.where(mask_N_T, values_N_T, 0.0)


def _clamped(log_ratio: Tensor) -> Tensor:
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
