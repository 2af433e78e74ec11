"""The share of live groups among training questions, by which a warm start's epoch is chosen."""

from dataclasses import replace

import pytest

from sleuth.episodes.limits import Limits
from sleuth.training.questions.headroom import live_share
from sleuth.types import Trajectory
from support import toy

PLAN = replace(toy.PLAN, warm_start_probe=4)


def share(value: object = None, group_size: int = 4) -> float:
    policy, engine = toy.new_learner()
    chosen = toy.parts(reward=toy.FirstLetter(value=value))  # type: ignore[arg-type]
    world = replace(chosen.world, engine=engine, limits=Limits.of(PLAN))
    algorithm = replace(chosen.algorithm, group_size=group_size)
    return live_share(policy, replace(chosen, world=world, algorithm=algorithm), PLAN)


def test_equal_rewards_leave_nothing_to_learn():
    assert share(lambda _: 1.0) == 0


def test_rewards_that_differ_in_every_group_leave_all():
    assert share(lambda trajectory: float(id(trajectory))) == 1


def test_only_the_chosen_questions_are_played():
    played: set[str] = set()

    def note(trajectory: Trajectory) -> float:
        played.add(trajectory.question.id)
        return 0.0

    share(note)
    assert len(played) == PLAN.warm_start_probe < len(toy.QUESTIONS)


def test_a_failed_reward_is_not_a_difference():
    def fail(_: Trajectory) -> float:
        return float("nan")

    assert share(fail) == 0


def test_the_same_policy_has_the_same_share():
    assert share(toy.lateness) == pytest.approx(share(toy.lateness))
