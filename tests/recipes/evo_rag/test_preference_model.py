"""The seven heads' loss by hand."""

import pytest
import torch

from sleuth.recipes.evo_rag.dpo import log_sigmoid
from sleuth.recipes.evo_rag.preference_model import Heads, accuracy, preference_loss


def test_the_mean_over_heads_by_hand():
    # −log σ(1) = 0.313262, −log σ(−2) = 2.126928, five times −log σ(0) = 0.693147
    chosen = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    rejected = torch.tensor([[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    expected = (0.313262 + 2.126928 + 5 * 0.693147) / 7
    assert float(preference_loss(chosen, rejected)) == pytest.approx(expected, abs=1e-6)


def test_tied_heads_are_dpo_at_temperature_1():
    # §3.3: "This loss reduces to DPO with temperature 1 if all heads are tied."
    chosen, rejected = torch.full((1, 7), -2.0), torch.full((1, 7), -3.5)
    # The DPO loss of log-probabilities −2 and −3.5 at β = 1 is −log σ(1.5).
    assert float(preference_loss(chosen, rejected)) == pytest.approx(-log_sigmoid(1.5))


def test_heads_are_linear_and_fixed_by_their_seed():
    heads = Heads(4, seed=3)
    states = torch.randn(5, 4)
    assert heads(states).shape == (5, 7)
    assert torch.allclose(heads(2 * states), 2 * heads(states))
    assert torch.allclose(heads.value(states), heads(states).mean(-1))
    assert torch.equal(heads.weight_K_D, Heads(4, seed=3).weight_K_D)
    assert not torch.equal(heads.weight_K_D, Heads(4, seed=4).weight_K_D)
    assert len(set(heads.weight_K_D[:, 0].tolist())) == 7


def test_accuracy_counts_the_better_mean():
    chosen = torch.tensor([[1.0, 1.0], [0.0, 0.0], [2.0, -1.0]])
    rejected = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert accuracy(chosen, rejected) == pytest.approx((1 + 0 + 0.5) / 3)
    assert accuracy(chosen[:0], rejected[:0]) == 0.0
