"""The multi-head preference model: which of two actions in one context leads to the larger return.

EVO-RAG, §3.3: seven linear heads f_k, one per step reward, on a frozen language model's state of
prefix and candidate; L_RM = −(1/7) Σ_k log σ(f_k(x⁺) − f_k(x⁻)). As printed, every head learns
from the same pairs, ranked by total return.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

NUM_HEADS = 7


class Heads(nn.Module):
    """Seven linear functions of a state. No bias: it would cancel in every difference."""

    def __init__(self, width: int, seed: int = 0) -> None:
        """`width` is D, the encoder's hidden size. Heads start small and different, fixed by `seed`."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight_K_D = nn.Parameter(torch.randn(NUM_HEADS, width, generator=generator) * 0.01 / width**0.5)

    def forward(self, states_N_D: Tensor) -> Tensor:
        """Scores [N, 7]."""
        return states_N_D @ self.weight_K_D.T

    def value(self, states_N_D: Tensor) -> Tensor:
        """One number per state, [N]: the mean of the heads."""
        scores: Tensor = self(states_N_D)
        return scores.mean(-1)


def preference_loss(chosen_P_K: Tensor, rejected_P_K: Tensor) -> Tensor:
    """L_RM, averaged over P pairs: mean over heads of −log σ(f_k(x⁺) − f_k(x⁻)); a scalar."""
    return -torch.nn.functional.logsigmoid(chosen_P_K - rejected_P_K).mean()


def accuracy(chosen_P_K: Tensor, rejected_P_K: Tensor) -> float:
    """Share of pairs whose better action has the larger mean score; a tie counts half. 0 for no pairs."""
    if not len(chosen_P_K):
        return 0.0
    difference = chosen_P_K.mean(-1) - rejected_P_K.mean(-1)
    return float(((difference > 0).float() + 0.5 * (difference == 0).float()).mean())
