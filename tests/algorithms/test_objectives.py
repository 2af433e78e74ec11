"""Numbers worked out by hand with log 2 = 0.693147, and what masks must do."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from sleuth.algorithms.base import KLEstimator
from sleuth.algorithms.objectives import (
    aggregate,
    clipped_surrogate,
    entropy,
    is_clipped,
    kl_per_token,
    masked_mean,
    ratio,
    truncated_ratio,
)

LOG2 = math.log(2)


def row(*values: float) -> Tensor:
    return torch.tensor([values])


def close(found: Tensor, *expected: float) -> None:
    assert found.flatten().tolist() == pytest.approx(expected, abs=1e-6)


def test_kl_estimators():
    # π = ½, ½, ¼ where π_ref = ¼, ½, ½: log π − log π_ref = log 2, 0, −log 2.
    logprobs, reference = row(-LOG2, -LOG2, -2 * LOG2), row(-2 * LOG2, -LOG2, -LOG2)
    close(kl_per_token(logprobs, reference, "k2"), 0.240227, 0, 0.240227)
    close(kl_per_token(logprobs, reference, "k3"), 0.5 + 0.693147 - 1, 0, 2 - 0.693147 - 1)


def test_k2_has_the_gradient_of_the_kl_and_k3_another():
    logits = torch.tensor([0.3, -0.2, 0.9, 0.0], requires_grad=True)
    reference = torch.tensor([0.0, 0.5, -0.4, 0.1]).log_softmax(0)
    policy = logits.log_softmax(0)
    (exact,) = torch.autograd.grad((policy.exp() * (policy - reference)).sum(), logits, retain_graph=True)

    def gradient(estimator: KLEstimator) -> Tensor:
        # The expectation over the policy's own samples, their probability being no part of the graph.
        expected = (policy.detach().exp() * kl_per_token(policy, reference, estimator)).sum()
        return torch.autograd.grad(expected, logits, retain_graph=True)[0]

    assert torch.allclose(gradient("k2"), exact, atol=1e-6)
    assert not torch.allclose(gradient("k3"), exact, atol=1e-3)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_an_absurd_token_stays_finite(estimator: str):
    logprobs = torch.tensor([[-1e4, 0.0, -5.0]], requires_grad=True)
    value = kl_per_token(logprobs, row(0.0, -1e4, -5.0), estimator)  # type: ignore[arg-type]
    value.sum().backward()
    assert bool(value.isfinite().all())
    assert bool(logprobs.grad.isfinite().all())
    assert bool(ratio(row(0.0), row(-1e4)).isfinite().all())


def test_ratio():
    close(ratio(row(-LOG2, -LOG2), row(-2 * LOG2, -LOG2)), 2, 1)
    logprobs = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    on_policy = ratio(logprobs, None)
    close(on_policy.detach(), 1, 1)
    on_policy.sum().backward()
    close(logprobs.grad, 1, 1)


def test_truncated_ratio():
    # π_old / π_engine = ½/¼, ¼/½, ½/⅛ cut from 4, and unknown.
    old = torch.tensor([[-LOG2, -2 * LOG2, -LOG2, -LOG2]], requires_grad=True)
    found = truncated_ratio(old, row(-2 * LOG2, -LOG2, -3 * LOG2, math.nan), 3.0)
    close(found, 2, 0.5, 3, 1)
    assert not found.requires_grad
    assert bool(truncated_ratio(row(0.0), row(-1e6), 1e30).isfinite())


def test_clipped_surrogate():
    ratios = row(2, 2, 0.5, 0.5, 1.1)
    advantages = row(1, -1, 1, -1, 3)
    # Only the pessimistic side is clipped: 1.2 for a good token, 0.8 for a bad one.
    close(clipped_surrogate(ratios, advantages, 0.2), -1.2, 2, -0.5, 0.8, -3.3)
    assert is_clipped(ratios, advantages, 0.2).tolist() == [[True, False, False, True, False]]


def test_a_clipped_token_has_no_gradient():
    logprobs = torch.tensor([[0.5, 0.1, -0.5]], requires_grad=True)
    clipped_surrogate(ratio(logprobs, row(0, 0, 0)), row(1, 1, -1), 0.2).sum().backward()
    close(logprobs.grad, 0, -math.exp(0.1), 0)


def test_aggregations():
    values = torch.tensor([[1.0, 2.0, 3.0], [5.0, 99.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert float(aggregate(values, mask, "sequence", 2)) == pytest.approx((2 + 5) / 2)
    assert float(aggregate(values, mask, "token", 4)) == pytest.approx(11 / 4)
    assert masked_mean(values, mask) == pytest.approx(11 / 4)


@pytest.mark.parametrize("how", ["sequence", "token"])
def test_empty_masks_and_poisoned_padding_give_zero(how: str):
    values = torch.tensor([[math.nan, math.inf], [-math.inf, 1.0]], requires_grad=True)
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    total = aggregate(values, nothing, how, 1.0)  # type: ignore[arg-type]
    total.backward()
    assert float(total.detach()) == 0.0
    assert values.grad.tolist() == [[0, 0], [0, 0]]
    assert masked_mean(values.detach(), nothing) == 0.0
    assert float(aggregate(torch.zeros(0, 0), torch.zeros(0, 0, dtype=torch.bool), how, 1.0)) == 0.0  # type: ignore[arg-type]


def test_entropy():
    close(entropy(torch.zeros(1, 4).log_softmax(-1)), math.log(4))
    close(entropy(row(0, -math.inf)), 0)
    close(entropy(row(math.log(3), 0).log_softmax(-1)), 0.75 * math.log(4 / 3) + 0.25 * math.log(4))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=9))
def test_entropy_is_between_zero_and_that_of_a_uniform_choice(logits: list[float]):
    found = float(entropy(torch.tensor(logits).log_softmax(-1)))
    assert -1e-5 <= found <= math.log(len(logits)) + 1e-5
