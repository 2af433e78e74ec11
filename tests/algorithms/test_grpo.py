import math
from dataclasses import replace
from itertools import combinations
from statistics import pvariance
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sleuth.algorithms.base import TokenBatch
from sleuth.algorithms.grpo import GRPO, group_advantages, most_varied
from sleuth.errors import ConfigError, RewardError
from sleuth.types import Question, Score, Segment, Signal, Trajectory

GROUPS = st.lists(st.floats(-100, 100), min_size=0, max_size=10)
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
LOG2 = math.log(2)
SCALES = st.sampled_from(["std", "std_floor", "none"])


def rollout(reward: float | None, tokens: int = 2, **fields: Any) -> Trajectory:
    score = None if reward is None else Score(reward, {}, fields.pop("invalid", ""))
    segments = (Segment("prompt", "", (1, 2)), Segment("policy", "", tuple(range(tokens))))
    return Trajectory(Question("q9", "?", ()), segments, score=score, **fields)


def test_advantages_worked_out_by_hand():
    # mean ½, deviations ±½, sample variance 4·¼/3, std 0.57735
    assert group_advantages([1, 0, 0, 1]) == pytest.approx([0.866024, -0.866024, -0.866024, 0.866024])
    assert group_advantages([1, 0, 0, 1], "none") == [0.5, -0.5, -0.5, 0.5]
    # EviOmni's std is the population's: 0.05 is below the floor of 0.1, 0.5 is not
    assert group_advantages([0.1, 0, 0, 0.1], "std_floor", 0.1) == pytest.approx([0.5, -0.5, -0.5, 0.5])
    assert group_advantages([1, 0, 0, 1], "std_floor", 0.1) == pytest.approx([1, -1, -1, 1])
    # the worked example of its §3.3: std 0.01, advantages ±1 without the floor, ±0.1 with it
    assert group_advantages([0.49, 0.51], "std_floor", 0.005) == pytest.approx([-1, 1])
    assert group_advantages([0.49, 0.51], "std_floor", 0.1) == pytest.approx([-0.1, 0.1])


@pytest.mark.parametrize("scale", ["std", "std_floor", "none"])
@pytest.mark.parametrize("rewards", [[], [3.5], [0.1] * 7, [0.0, 0.0], [-0.0, 0.0]])
def test_nothing_to_compare_is_exactly_zero(rewards: list[float], scale: Any):
    assert group_advantages(rewards, scale) == [0.0] * len(rewards)


def test_the_most_varied_rewards_worked_out_by_hand():
    assert most_varied([0, 0, 1, 0, 0, 0], 3) == [0, 1, 2]  # the success and two failures
    assert most_varied([1, 1, 1, 0], 2) == [0, 3]
    # {0, .8, 1} has variance .187, {0, .5, 1} .167
    assert most_varied([0.8, 1.0, 0.0, 0.5], 3) == [0, 1, 2]
    assert most_varied([3.0, 1.0], 2) == most_varied([3.0, 1.0], 5) == [0, 1]


@patient
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=8), st.integers(1, 8))
def test_no_other_part_of_a_group_varies_more(rewards: list[float], count: int):
    chosen = most_varied(rewards, count)
    size = min(count, len(rewards))
    assert len(chosen) == size
    assert chosen == sorted(set(chosen))
    best = max(pvariance(part) for part in combinations(rewards, size))
    assert pvariance([rewards[i] for i in chosen]) == pytest.approx(best, abs=1e-9)


def test_advantages_below_zero_are_weighed_and_the_others_stay():
    group = [rollout(reward) for reward in (0.0, 0.0, 0.0, 1.0)]
    weights = [s.weights for s in GRPO(scale="none", negative_weight=0.4).signals([group])]
    assert weights == [(pytest.approx(-0.1),) * 2] * 3 + [(0.75,) * 2]
    # the failures do not count as a group without a signal, and with weight 0 they are not computed
    algorithm = GRPO(scale="none", beta=0.0, negative_weight=0.0, drop_zero_variance=True)
    signals = algorithm.signals([group])
    assert [algorithm.is_idle(signal) for signal in signals] == [True] * 3 + [False]
    with pytest.raises(ConfigError, match="negative_weight"):
        GRPO(negative_weight=-1.0)
    with pytest.raises(ConfigError, match="negative_weight"):
        GRPO(negative_weight=1.5)


def test_only_the_most_varied_rollouts_are_trained_on():
    group = [rollout(reward, sample=i) for i, reward in enumerate([0.0, 0.0, 1.0, 0.0])]
    signals = GRPO(scale="none", train_on=2).signals([group])
    # the baseline is the mean of those that are left
    assert [(s.trajectory.sample, s.weights) for s in signals] == [(0, (-0.5,) * 2), (2, (0.5,) * 2)]
    assert GRPO(scale="none", train_on=2, drop_zero_variance=True).signals([[rollout(1.0)] * 4]) == []
    # of three failures the malformed one, of two successes the well-formed one
    faults = ["", "", "no answer", "no <think>", ""]
    rewards = [0.0, 0.0, 0.0, 1.0, 1.0]
    group = [rollout(r, sample=i, malformed=f) for i, (r, f) in enumerate(zip(rewards, faults, strict=True))]
    assert {s.trajectory.sample for s in GRPO(scale="none", train_on=2).signals([group])} == {2, 4}
    with pytest.raises(ConfigError, match="nothing to compare"):
        GRPO(train_on=1)
    with pytest.raises(RewardError, match="finite"):
        GRPO(train_on=2).signals([[rollout(math.nan), rollout(1.0), rollout(0.0)]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_refused(bad: float):
    with pytest.raises(RewardError, match="finite"):
        group_advantages([1.0, bad])
    with pytest.raises(RewardError, match="finite"):
        GRPO().signals([[rollout(1.0), rollout(bad)]])


def test_rewards_too_far_apart_are_refused():
    assert group_advantages([1e300, 0.0]) == pytest.approx([0.7071068, -0.7071068])
    with pytest.raises(RewardError, match="too far apart"):
        group_advantages([1.7e308, -1.7e308])


@patient
@given(GROUPS, SCALES, st.randoms())
def test_order_follows_the_group(rewards: list[float], scale: Any, random: Any):
    order = list(range(len(rewards)))
    random.shuffle(order)
    found = group_advantages(rewards, scale)
    assert group_advantages([rewards[i] for i in order], scale) == [found[i] for i in order]


@patient
@given(GROUPS, SCALES)
def test_advantages_sum_to_zero_and_keep_the_ranking(rewards: list[float], scale: Any):
    found = group_advantages(rewards, scale)
    size = max((abs(a) for a in found), default=0.0)
    assert abs(math.fsum(found)) <= 1e-9 * (1 + size) + 1e-6
    assert [a for _, a in sorted(zip(rewards, found, strict=True))] == sorted(found)


whole = st.lists(st.integers(-50, 50), min_size=2, max_size=8)


@patient
@given(whole, st.integers(-1000, 1000), SCALES)
def test_a_shift_changes_nothing(rewards: list[int], shift: int, scale: Any):
    assert group_advantages([r + shift for r in rewards], scale) == pytest.approx(
        group_advantages(rewards, scale), abs=1e-7
    )


@patient
@given(whole, st.sampled_from([0.5, 3.0, 1000.0]))
def test_std_forgets_the_scale_of_the_rewards(rewards: list[int], factor: float):
    assert group_advantages([r * factor for r in rewards]) == pytest.approx(
        group_advantages(rewards), abs=1e-4
    )


def test_signals_carry_the_advantage_on_every_policy_token():
    found = GRPO(scale="none").signals([[rollout(1.0, 3), rollout(0.0, 1)], [rollout(5.0)]])
    assert [s.weights for s in found] == [(0.5,) * 3, (-0.5,), (0.0, 0.0)]


def test_unscored_episodes_are_left_out_before_the_mean():
    group = [
        rollout(1.0),
        rollout(0.0),
        rollout(100.0, fault="retriever down"),
        rollout(math.nan, invalid="the judge failed"),
        rollout(None),
    ]
    found = GRPO(scale="none").signals([group, []])
    assert [s.weights[0] for s in found] == [0.5, -0.5]


def test_an_empty_completion_is_compared_but_not_trained_on():
    found = GRPO(scale="none").signals([[rollout(1.0), rollout(0.0, tokens=0)]])
    assert [s.weights for s in found] == [(0.5, 0.5)]


def test_normalisers():
    signals = [Signal(rollout(1.0, 3), (1.0,) * 3), Signal(rollout(1.0, 1), (1.0,))]
    assert GRPO(aggregation="sequence").normaliser(signals) == 2
    assert GRPO(aggregation="token").normaliser(signals) == 4
    assert GRPO().normaliser([]) == GRPO(aggregation="token").normaliser([]) == 1


def batch(**changes: Any) -> TokenBatch:
    values: dict[str, Any] = {
        "logprobs_N_T": torch.tensor([[-1.0, -2.0], [-3.0, math.nan]], requires_grad=True),
        "mask_N_T": torch.tensor([[True, True], [True, False]]),
        "weights_N_T": torch.tensor([[1.0, 1.0], [-2.0, 0.0]]),
    }
    return TokenBatch(**(values | changes))


def test_loss_on_policy_by_hand():
    # ratio 1 everywhere: −A per token
    sequence = GRPO(beta=0.0).loss(batch(), 2)
    assert float(sequence.value.detach()) == pytest.approx((-1 + 2) / 2)
    token = GRPO(beta=0.0, aggregation="token").loss(batch(), 3)
    assert float(token.value.detach()) == pytest.approx((-1 - 1 + 2) / 3)
    assert sequence.metrics == {"ratio": 1.0, "clip_fraction": 0.0}


def test_gradient_by_hand_and_none_on_padding():
    tokens = batch()
    GRPO(beta=0.0).loss(tokens, 2).value.backward()
    assert tokens.logprobs_N_T.grad.tolist() == [[-0.25, -0.25], [1.0, 0.0]]


def test_loss_with_penalty_and_old_policy_by_hand():
    old = torch.tensor([[-1.0 - math.log(2), -2.0], [-3.0, math.inf]])
    reference = torch.tensor([[-1.0, -2.0 - math.log(2)], [-3.0, math.nan]])
    found = GRPO(beta=0.1, epsilon=0.2).loss(batch(old_logprobs_N_T=old, ref_logprobs_N_T=reference), 2)
    # ratios 2, 1, 1; k3 0, 0.193147, 0; the first token is clipped at 1.2
    expected = ((-1.2 + -1 + 0.1 * 0.193147) / 2 + 2) / 2
    assert float(found.value.detach()) == pytest.approx(expected, abs=1e-6)
    assert found.metrics["clip_fraction"] == pytest.approx(1 / 3)
    assert found.metrics["ratio"] == pytest.approx(4 / 3)


def test_a_batch_without_policy_tokens_is_zero():
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    for aggregation in ("sequence", "token"):
        found = GRPO(beta=0.0, aggregation=aggregation).loss(batch(mask_N_T=nothing), 1.0)  # type: ignore[arg-type]
        assert float(found.value.detach()) == 0.0
        assert found.metrics == {"ratio": 0.0, "clip_fraction": 0.0}


def test_idle_signals():
    silent, loud = Signal(rollout(1.0), (0.0, 0.0)), Signal(rollout(1.0), (0.0, 0.1))
    assert GRPO(beta=0.0).is_idle(silent)
    assert not GRPO(beta=0.0).is_idle(loud)
    assert not GRPO(beta=0.1).is_idle(silent), "the penalty acts on it"


def test_needs_reference_only_for_the_penalty():
    assert GRPO(beta=0.1).needs_reference
    assert not GRPO(beta=0.0).needs_reference
    with pytest.raises(ConfigError, match="reference"):
        GRPO(beta=0.1).loss(batch(), 1)


def test_groups_with_equal_rewards_may_leave_the_denominator():
    live, dead = [rollout(1.0), rollout(0.0)], [rollout(1.0), rollout(1.0)]
    kept = GRPO(drop_zero_variance=True).signals([live, dead])
    assert len(kept) == 2
    assert GRPO(drop_zero_variance=True).normaliser(kept) == 2
    assert len(GRPO().signals([live, dead])) == 4


@pytest.mark.parametrize("old", [None, [-LOG2, -LOG2, -LOG2]])
def test_tokens_of_another_engine_weigh_by_the_truncated_ratio(old: list[float] | None):
    """π = ½ each; the engine's ¼, 1 and unknown give ratios 2 cut to 1.5, ½ and 1, on the surrogate and not the KL."""
    logprobs = torch.full((1, 3), -LOG2, requires_grad=True)
    batch = TokenBatch(
        logprobs,
        torch.ones(1, 3, dtype=torch.bool),
        torch.tensor([[1.0, -2.0, 3.0]]),
        old_logprobs_N_T=None if old is None else torch.tensor([old]),
        ref_logprobs_N_T=torch.full((1, 3), -2 * LOG2),
        engine_logprobs_N_T=torch.tensor([[-2 * LOG2, 0.0, math.nan]]),
    )
    algorithm = GRPO(aggregation="token", beta=0.1, kl="k2", engine_ratio_max=1.5)
    loss = algorithm.loss(batch, 1.0).value
    loss.backward()
    kl = 3 * 0.1 * 0.5 * LOG2**2
    assert float(loss.detach()) == pytest.approx(-1.5 * 1 + 0.5 * 2 - 3 + kl)
    gradient = [-1.5 + 0.1 * LOG2, 1 + 0.1 * LOG2, -3 + 0.1 * LOG2]
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx(gradient)
    plain = replace(algorithm, engine_ratio_max=0.0).loss(batch, 1.0).value
    assert float(plain.detach()) == pytest.approx(-1 + 2 - 3 + kl)
