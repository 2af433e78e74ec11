"""Schedules against values computed by hand; AdamW against torch; non-finite gradients never land."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import Parameter

from sleuth.errors import ConfigError, TrainingError
from sleuth.training.update.optimiser import Optimiser, Schedule


def test_constant_after_warm_up() -> None:
    schedule = Schedule(1.0, total=10, warmup=0.4)
    assert [schedule.at(i) for i in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_linear_falls_towards_zero_and_never_below() -> None:
    schedule = Schedule(2.0, total=6, kind="linear", warmup=1 / 3)
    assert [schedule.at(i) for i in range(7)] == [1.0, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0]
    assert schedule.at(100) == 0.0


def test_cosine_golden_values() -> None:
    schedule = Schedule(1.0, total=4, kind="cosine")
    half = math.sqrt(2) / 4
    assert [schedule.at(i) for i in range(5)] == pytest.approx([1.0, 0.5 + half, 0.5, 0.5 - half, 0.0])


def test_without_warm_up_the_first_update_has_the_full_rate() -> None:
    assert Schedule(3.0, total=5).at(0) == 3.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"peak": 1.0, "total": 5, "kind": "cosin"},
            "kind must be one of constant, linear, cosine, not 'cosin'",
        ),
        ({"peak": 1.0, "total": 5, "warmup": 1.5}, "1.5"),
        ({"peak": float("nan"), "total": 5}, "nan"),
        ({"peak": 1.0, "total": 0}, "total must be at least 1, not 0"),
    ],
)
def test_a_wrong_schedule_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Schedule(**settings)  # type: ignore[arg-type]


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
    norm = optimiser._clip()
    assert norm == pytest.approx(5.0)  # √(4 · 2.25 + 2 · 8)
    assert matrix.grad.flatten().tolist() == pytest.approx([0.3] * 4)
    assert bias.grad.tolist() == pytest.approx([math.sqrt(8) / 5] * 2)


def test_small_gradients_and_switched_off_clipping_change_nothing() -> None:
    for limit, size in ((1.0, 0.1), (0.0, 100.0)):
        matrix, _, optimiser = make(max_grad_norm=limit)
        matrix.grad = torch.full((2, 2), size)
        optimiser._clip()
        assert torch.equal(matrix.grad, torch.full((2, 2), size))


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
    assert (optimiser.updates, optimiser.skipped) == (2, 1)
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
