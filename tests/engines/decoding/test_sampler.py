import math

import pytest
import torch

from sleuth.engines.base import Sampling
from sleuth.engines.decoding.sampler import choose
from sleuth.engines.decoding.turn import uniforms
from sleuth.errors import EngineError

PROBS = torch.tensor([[0.5, 0.125, 0.25, 0.125]], dtype=torch.float64)


def draw(probs: torch.Tensor, u: float, **sampling: float) -> int:
    (token,), _ = choose(probs.log(), Sampling(**sampling), torch.tensor([u], dtype=torch.float64))  # type: ignore[arg-type]
    return token


def test_uniform_depends_on_seed_and_step_alone() -> None:
    assert uniforms(7, 3).tolist() == uniforms(7, 100)[:3].tolist()
    assert uniforms(7, 1)[0] != uniforms(8, 1)[0]
    assert (uniforms(-1, 50) < 1).all()
    assert len(set(uniforms(2**63, 50).tolist())) == 50


@pytest.mark.parametrize(
    ("u", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.63, 2), (0.874, 2), (0.876, 3), (1 - 2**-53, 3)]
)
def test_inverse_cdf_in_id_order(u: float, token: int) -> None:
    assert draw(PROBS, u) == token


@pytest.mark.parametrize(
    ("u", "top_p", "token"),
    [
        # 0.5 < 0.7 <= 0.5 + 0.25, so tokens 0 and 2 stay with 2/3 and 1/3.
        *((u, 0.7, token) for u, token in [(0.0, 0), (0.66, 0), (0.67, 2), (1 - 2**-53, 2)]),
        # Equal probabilities at the edge all stay.
        *((u, 0.8, token) for u, token in [(0.55, 1), (1 - 2**-53, 3)]),
        (0.999, 1e-9, 0),
    ],
)
def test_top_p_keeps_the_fewest_tokens_that_reach_it(u: float, top_p: float, token: int) -> None:
    assert draw(PROBS, u, top_p=top_p) == token


def test_top_p_beyond_the_short_list_sorts_everything() -> None:
    weights = torch.ones(1, 2000, dtype=torch.float64)
    weights[0, 500:] = 2.0
    probs = weights / weights.sum()
    # The 1500 heavy tokens hold 0.857, more than 512 of them are needed for 0.8; the light ones go.
    assert draw(probs, 0.0, top_p=0.8) == 500
    assert draw(probs, 1 - 2**-53, top_p=0.8) == 1999
    assert draw(probs, 0.0, top_p=0.9) == 0


def test_zero_probability_is_never_drawn() -> None:
    probs = torch.tensor([[0.0, 1.0, 0.0]])
    assert {draw(probs, u) for u in (0.0, 0.5, 1 - 2**-53)} == {1}


def test_logprobs_are_those_of_the_full_distribution_at_the_temperature() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    u = torch.tensor([0.999], dtype=torch.float64)
    (token,), (logprob,) = choose(logits, Sampling(temperature=0.5, top_p=0.9), u)
    assert token == 2
    assert logprob == pytest.approx(6 - math.log(math.exp(2) + math.exp(4) + math.exp(6)), abs=1e-9)
    (token,), (logprob,) = choose(logits, Sampling(temperature=0), u)
    assert token == 2
    assert logprob == pytest.approx(3 - math.log(math.exp(1) + math.exp(2) + math.exp(3)), abs=1e-6)


def test_frequencies_follow_the_distribution() -> None:
    u = torch.from_numpy(uniforms(3, 20_000))
    tokens, _ = choose(PROBS.log().expand(20_000, 4), Sampling(), u)
    counts = torch.bincount(torch.tensor(tokens), minlength=4) / 20_000
    assert torch.allclose(counts, PROBS[0].float(), atol=0.012)


def test_not_a_number_is_an_error() -> None:
    with pytest.raises(EngineError, match="not finite"):
        choose(torch.tensor([[math.nan, 1.0]]), Sampling(), torch.zeros(1))
