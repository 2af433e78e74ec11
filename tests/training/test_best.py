from pathlib import Path

import pytest
import torch

from sleuth.errors import TrainingError
from sleuth.training.policy import Policy
from sleuth.training.runs.best import BestCheckpoint
from support import toy


@pytest.fixture
def policy() -> Policy:
    return toy.new_learner()[0]


def shift(policy: Policy, by: float) -> None:
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(by)


def weight(policy: Policy) -> float:
    return float(policy.trainable_parameters()[0].detach().flatten()[0])


def test_the_first_of_the_best_is_kept(tmp_path: Path, policy: Policy):
    best, kept = BestCheckpoint(tmp_path, patience=2), []
    for cycle, score in enumerate((0.1, 0.3, 0.3, 0.2)):
        best.add(cycle, score, policy, cycle)
        kept.append(weight(policy))
        shift(policy, 1.0)
    assert best.step == 1
    best.load(policy)
    assert weight(policy) == kept[1]


def test_rewards_may_be_negative(tmp_path: Path, policy: Policy):
    best = BestCheckpoint(tmp_path, patience=0)
    best.add(0, -3.0, policy, 0)
    shift(policy, 1.0)
    best.add(1, -4.0, policy, 0)
    before = weight(policy)
    best.load(policy)
    assert weight(policy) == pytest.approx(before - 1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("scores", "stalled"),
    [
        ([0.1, 0.1], None),
        ([0.0, 0.0, 0.0], 2),
        ([0.1, 0.2, 0.1, 0.2], 3),  # as good again is not a rise
        ([0.1, 0.0, 0.2, 0.1, 0.3, 0.0, 0.0], 6),
    ],
)
def test_two_cycles_without_a_rise_are_enough(
    tmp_path: Path, policy: Policy, scores: list[float], stalled: int | None
):
    best = BestCheckpoint(tmp_path, patience=2)
    for cycle, score in enumerate(scores):
        best.add(cycle, score, policy, cycle)
    assert best.stalled_at() == stalled
    assert BestCheckpoint(tmp_path, patience=2).scores == dict(enumerate(scores))


def test_repeated_steps_replace_their_scores(tmp_path: Path, policy: Policy):
    best = BestCheckpoint(tmp_path, patience=2)
    for cycle, score in enumerate((0.1, 0.2, 0.5)):
        best.add(cycle, score, policy, cycle)
    again = BestCheckpoint(tmp_path, patience=2)
    again.add(1, 0.3, policy, 0)
    assert again.scores == {0: 0.1, 1: 0.3}
    assert again.step == 1
    again.load(policy)


def test_the_best_weights_before_a_resume_outlive_better_ones_after_it(tmp_path: Path, policy: Policy):
    best, kept = BestCheckpoint(tmp_path, patience=0), {}
    for step, score, saved in ((0, 0.1, -1), (20, 0.5, 10), (40, 0.6, 30), (45, 0.7, 30)):
        kept[step] = weight(policy)
        best.add(step, score, policy, saved)
        shift(policy, 1.0)
    resumed = BestCheckpoint(tmp_path, patience=0)  # killed, and continued after step 30
    resumed.add(40, 0.48, policy, 30)
    assert resumed.step == 20
    resumed.load(policy)
    assert weight(policy) == kept[20]


def test_a_missing_checkpoint(tmp_path: Path, policy: Policy):
    with pytest.raises(TrainingError, match="missing or damaged"):
        BestCheckpoint(tmp_path, patience=2).load(policy)
