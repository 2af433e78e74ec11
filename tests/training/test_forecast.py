"""The most a run can cost, by hand for small numbers."""

from dataclasses import replace
from typing import Any

import pytest

from sleuth.algorithms.grpo import GRPO
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.training.forecast import Forecast, Learner, Length, Work, forecast, speed
from support import toy


def plan(**changes: Any) -> Any:
    most = {"steps": 10, "batch": 2, "max_steps": 3, "max_new_tokens": 20, "max_passage_tokens": 80}
    room = {"max_context": 300, "micro_batch_tokens": 1000}
    warm = {"warm_start_examples": 5, "warm_start_epochs": 2}
    return replace(toy.PLAN, **(most | room | warm | changes))


def test_by_hand() -> None:
    # An episode has at most min(300, 4 × 100) tokens; 10 steps × 2 questions × 4 samples of it, and 10 shown twice over.
    got = forecast(plan(), GRPO(group_size=4, beta=0.0), Learner(1000, 1e6))
    assert got.likely is None
    assert got.most.rollouts == 10 * 2 * 4 * 300
    assert got.most.updates == got.most.rollouts + 5 * 2 * 300
    assert got.most.hours == pytest.approx((2 * 24_000 + 6 * 27_000) * 1000 / 0.5e6 / 3600)


def test_the_likely_work_shares_prompts() -> None:
    got = forecast(plan(), GRPO(group_size=4, beta=0.0), Learner(1000, 1e6), Length(30, 50, 2)).likely
    assert got.rollouts == 10 * 2 * (30 + 4 * 50)
    assert got.updates == got.rollouts + 5 * 2 * 80
    assert got.hours == pytest.approx((2 * 4600 + 6 * 5400) * 1000 / 0.5e6 / 3600)


def test_the_probe_and_the_measurement_are_counted() -> None:
    def rollouts(**changes: Any) -> int:
        return forecast(plan(**changes), GRPO(group_size=4, beta=0.0), Learner(1000, 1e6)).most.rollouts

    assert rollouts(warm_start_probe=3) - rollouts() == 2 * 3 * 4 * 300
    assert rollouts(warm_start_probe=3, warm_start_examples=0) == rollouts()
    assert rollouts(candidates=3) - rollouts() == 3 * 4 * 300
    assert rollouts(candidates=3, measure=False) == rollouts()


def test_branches_are_counted() -> None:
    # In each of two stages a trunk and, at its three turns, three forks.
    got = forecast(plan(), DPO(group_size=4), Learner(1000, 1e6))
    assert got.most.rollouts == 10 * 2 * (2 * (1 + 3 * 3)) * 300


def test_the_likely_branches_are_those_of_a_demonstration() -> None:
    likely = forecast(plan(max_steps=20), DPO(group_size=4), Learner(1000, 1e6), Length(30, 50, 2)).likely
    assert likely.rollouts == 10 * 2 * (30 + 2 * (1 + 3 * 2) * 50)


def test_a_reference_costs_a_pass() -> None:
    free = forecast(plan(), GRPO(group_size=4, beta=0.0), Learner(1000, 1e6))
    held = forecast(plan(), GRPO(group_size=4, beta=0.1), Learner(1000, 1e6))
    assert held.most.hours - free.most.hours == pytest.approx(2 * 24_000 * 1000 / 0.5e6 / 3600)


def test_the_line_reads_well() -> None:
    most = Work(1_234_567, 999, 26.0)
    assert Forecast(most, None).line() == (
        "training takes at most 26.0 h (1.2 M tokens in rollouts, 999 in updates)"
    )
    likely = Forecast(most, Work(1, 1, 0.5)).line()
    assert likely.startswith("training takes likely 30 min (1 tokens in rollouts")


def test_the_machine_is_measured() -> None:
    assert 1e8 < speed() < 1e16
