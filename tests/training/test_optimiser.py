"""Schedules against values computed by hand; AdamW against torch; non-finite gradients never land."""

import math

import pytest
import torch
from torch.nn import Parameter

from sleuth.errors import TrainingError
from sleuth.training.update.optimiser import Optimiser, Schedule

HALF = math.sqrt(2) / 4


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (Schedule(3.0, total=5), [3.0, 3.0]),
        (Schedule(1.0, total=10, warmup=0.4), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]),
        (Schedule(2.0, 6, "linear", warmup=1 / 3), [1.0, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0]),
        (Schedule(1.0, 4, "cosine"), [1.0, 0.5 + HALF, 0.5, 0.5 - HALF, 0.0]),
    ],
)
def test_rates_by_hand(schedule: Schedule, rates: list[float]) -> None:
    assert [schedule.at(i) for i in range(len(rates))] == pytest.approx(rates)


def make(value: float = 1.0, **options: float) -> tuple[Parameter, Parameter, Optimiser]:
    matrix, bias = Parameter(torch.full((2, 2), value)), Parameter(torch.full((2,), value))
    return matrix, bias, Optimiser([matrix, bias], Schedule(0.1, total=10), **options)  # type: ignore[arg-type]


def test_first_update_moves_by_the_learning_rate() -> None:
    # AdamW's first step is lr · g / (|g| + ε) whatever the size of g.
    matrix, bias, optimiser = make()
    matrix.grad, bias.grad = torch.full((2, 2), 0.3), torch.full((2,), -0.3)
    assert optimiser.step().made
    assert matrix.detach().flatten().tolist() == pytest.approx([0.9] * 4)
    assert bias.detach().tolist() == pytest.approx([1.1] * 2)


def test_weight_decay_reaches_matrices_only() -> None:
    matrix, bias, optimiser = make(weight_decay=0.5)
    matrix.grad, bias.grad = torch.zeros(2, 2), torch.zeros(2)
    optimiser.step()
    assert matrix.detach().flatten().tolist() == pytest.approx([0.95] * 4)  # 1 - lr · decay
    assert bias.detach().tolist() == [1.0, 1.0]


def test_clipping_scales_the_joint_norm() -> None:
    matrix, bias, optimiser = make(max_grad_norm=1.0)
    matrix.grad, bias.grad = torch.full((2, 2), 1.5), torch.full((2,), math.sqrt(8))
    assert optimiser.step().grad_norm == pytest.approx(5.0)  # √(4 · 2.25 + 2 · 8)
    moments, _ = optimiser.state()  # the first moment is a tenth of the clipped gradient
    assert moments["0.exp_avg"].flatten().tolist() == pytest.approx([0.03] * 4)
    assert moments["1.exp_avg"].tolist() == pytest.approx([math.sqrt(8) / 50] * 2)


@pytest.mark.parametrize(("limit", "size"), [(1.0, 0.1), (0.0, 100.0)])
def test_small_gradients_and_switched_off_clipping_change_nothing(limit: float, size: float) -> None:
    matrix, _, optimiser = make(max_grad_norm=limit)
    matrix.grad = torch.full((2, 2), size)
    optimiser.step()
    assert optimiser.state()[0]["0.exp_avg"].flatten().tolist() == pytest.approx([size / 10] * 4)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_non_finite_gradient_is_dropped_and_counted(poison: float) -> None:
    matrix, bias, optimiser = make()
    matrix.grad, bias.grad = torch.ones(2, 2), torch.ones(2)
    optimiser.step()
    before = [
        matrix.detach().clone(),
        bias.detach().clone(),
        *(m.clone() for m in optimiser.state()[0].values()),
    ]
    matrix.grad, bias.grad = torch.tensor([[1.0, poison], [1.0, 1.0]]), torch.ones(2)
    result = optimiser.step()
    after = [matrix.detach(), bias.detach(), *optimiser.state()[0].values()]
    assert not result.made
    assert not math.isfinite(result.grad_norm)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert optimiser.updates == 2
    assert matrix.grad is None


def test_an_update_that_was_passed_over_moves_the_schedule_on() -> None:
    parameter = Parameter(torch.ones(2, 2))
    optimiser = Optimiser([parameter], Schedule(1.0, total=4, kind="linear"))
    optimiser.pass_over(2)
    parameter.grad = torch.ones(2, 2)
    assert optimiser.step().lr == 0.5


def test_state_carries_on_exactly() -> None:
    def advance(parameter: Parameter, optimiser: Optimiser, i: int) -> None:
        parameter.grad = torch.sin(torch.arange(6.0).view(2, 3) + i)
        optimiser.step()

    schedule = Schedule(0.1, total=8, kind="cosine")
    straight = Parameter(torch.ones(2, 3))
    optimiser = Optimiser([straight], schedule)
    for i in range(6):
        if i == 3:
            weights, state = straight.detach().clone(), optimiser.state()
            moments = {name: value.clone() for name, value in state[0].items()}
        advance(straight, optimiser, i)
    resumed = Parameter(weights)
    again = Optimiser([resumed], schedule)
    again.load_state(moments, state[1])
    for i in range(3, 6):
        advance(resumed, again, i)
    assert torch.equal(straight, resumed)


def test_state_of_another_model_is_refused() -> None:
    matrix, bias, optimiser = make()
    matrix.grad, bias.grad = torch.ones(2, 2), torch.ones(2)
    optimiser.step()
    other = Optimiser([Parameter(torch.ones(3, 3)), Parameter(torch.ones(2))], Schedule(0.1, total=1))
    with pytest.raises(TrainingError, match="another model"):
        other.load_state(*optimiser.state())


def test_nothing_to_train_is_refused() -> None:
    with pytest.raises(TrainingError, match="no parameters"):
        Optimiser([], Schedule(0.1, total=1))
