"""The DPO objective by hand, and that its weights on tokens have its gradient."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sleuth.algorithms.base import TokenBatch
from sleuth.algorithms.pairwise import sigmoid, signals_of
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.types import Action, Question, Segment, Signal, Trajectory


def turn(length: int, kind: str = "search") -> Trajectory:
    segments = (Segment("prompt", "", (1, 2)), Segment("policy", "", tuple(range(length))))
    return Trajectory(Question("q", "?", ()), segments, (Action(kind, "", 1),))


PAIR = [(turn(2), turn(3))]


def test_equation_of_section_3_4_by_hand():
    # log π(x⁺) = −2, log π(x⁻) = −5: β h = 0.3; −log σ(0.3) = log(1 + e^−0.3) = 0.554355
    _, figures = DPO().weigh(signals_of(PAIR), [-2.0, -5.0], None)
    assert figures["margin"] == pytest.approx(3.0)
    assert figures["loss"] == pytest.approx(0.554355, abs=1e-6)


def test_with_a_reference_by_hand():
    # h = (−2 + 3) − (−5 + 4) = 2: β h = 0.2; −log σ(0.2) = 0.598139
    _, figures = DPO().weigh(signals_of(PAIR), [-2.0, -5.0], [-3.0, -4.0])
    assert figures["loss"] == pytest.approx(0.598139, abs=1e-6)
    _, figures = DPO().weigh(signals_of(PAIR), [-2.0, -5.0], [-2.0, -5.0])
    assert figures["loss"] == pytest.approx(math.log(2))


def test_signals_mark_the_sides():
    signals = signals_of(PAIR)
    assert [s.weights for s in signals] == [(1.0, 1.0), (-1.0, -1.0, -1.0)]
    # β σ(−0.3) = 0.1 · 0.425557
    weighed, _ = DPO().weigh(signals, [-2.0, -5.0], None)
    assert [s.weights[0] for s in weighed] == pytest.approx([0.0425557, -0.0425557], abs=1e-7)
    assert DPO().normaliser(weighed) == 1.0


def test_figures_count_answers_preferred_to_searches_and_the_reverse():
    kinds = [("answer", "search"), ("answer", "search"), ("search", "answer"), ("search", "search")]
    signals = signals_of([(turn(2, chosen), turn(3, rejected)) for chosen, rejected in kinds])
    _, figures = DPO().weigh(signals, [-2.0, -5.0] * 4, None)
    assert (figures["answer_over_search"], figures["search_over_answer"]) == (0.5, 0.25)


def test_batches_hold_whole_pairs_in_shuffled_order():
    signals = signals_of([(turn(n), turn(n)) for n in range(1, 8)])
    batches = DPO(update_pairs=3).batches(signals, seed=1)
    assert [len(batch) for batch in batches] == [6, 6, 2]
    assert all(
        x.trajectory == y.trajectory
        for batch in batches
        for x, y in zip(batch[::2], batch[1::2], strict=True)
    )
    lengths = [s.trajectory.response_length for batch in batches for s in batch[::2]]
    assert sorted(lengths) == list(range(1, 8)) != lengths
    assert DPO(update_pairs=3).batches(signals, seed=1) == batches


@pytest.mark.parametrize("with_reference", [True, False])
def test_weighted_tokens_have_the_gradient_of_the_mean_loss(with_reference: bool):
    torch.manual_seed(0)
    lengths = [2, 4, 3, 1]
    mask = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
    direct = torch.randn(4, 4, requires_grad=True)
    reference = torch.randn(4, 4) if with_reference else torch.zeros(4, 4)

    def sums(values: torch.Tensor) -> torch.Tensor:
        return values.where(mask, 0.0).sum(-1)

    ratios = (sums(direct) - sums(reference)).reshape(2, 2)
    logits = 0.7 * (ratios[:, 0] - ratios[:, 1])
    (-torch.nn.functional.logsigmoid(logits)).mean().backward()

    algorithm = DPO(beta=0.7)
    signals = signals_of([(turn(2), turn(4)), (turn(3), turn(1))])
    refs = sums(reference).tolist() if with_reference else None
    weighed, _ = algorithm.weigh(signals, sums(direct).tolist(), refs)
    through = direct.detach().clone().requires_grad_()
    weights = torch.zeros(4, 4)
    for row, signal in zip(weights, weighed, strict=True):
        row[: len(signal.weights)] = torch.tensor(signal.weights)
    batch = TokenBatch(through, mask, weights)
    algorithm.loss(batch, algorithm.normaliser(weighed)).value.backward()
    assert torch.allclose(through.grad, direct.grad, atol=1e-7)


@given(st.floats(-1e4, 1e4))
def test_sigmoid_never_overflows(x: float):
    assert 0 <= sigmoid(x) <= 1
    assert sigmoid(x) == pytest.approx(float(torch.sigmoid(torch.tensor(x, dtype=torch.float64))))


def test_the_reference_is_wanted_unless_the_formula_is_as_printed():
    assert DPO().needs_reference
    assert not DPO(reference_free=True).needs_reference
    assert DPO().normaliser([]) == 1.0
    assert DPO().normaliser([Signal(turn(1), (1.0,))] * 6) == 3.0
