"""The share of groups with right and wrong answers, by which a warm start's epoch is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sleuth.algorithms.grpo import GRPO
from sleuth.episodes.limits import Limits
from sleuth.training.figures import is_right
from sleuth.training.questions.headroom import mixed_share
from sleuth.types import Question, Trajectory
from support import toy

PLAN = replace(toy.PLAN, warm_start_probe=4)


@dataclass(frozen=True)
class Kept(GRPO):
    """GRPO that keeps the groups it collected."""

    groups: list[list[Trajectory]] = field(default_factory=list)

    def collect(self, questions: Sequence[Question], world: Any, **options: Any) -> list[list[Trajectory]]:
        self.groups.extend(found := super().collect(questions, world, **options))
        return found


def share(answers: dict[str, tuple[str, ...]]) -> tuple[float, list[list[Trajectory]]]:
    """The share and the groups it was measured on, with accepted answers by question."""
    policy, engine = toy.new_learner()
    algorithm = Kept(group_size=4)
    questions = [replace(q, answers=answers.get(q.id, ("never",))) for q in toy.QUESTIONS]
    chosen = toy.parts(algorithm, questions=questions)
    world = replace(chosen.world, engine=engine, limits=Limits.of(PLAN))
    return mixed_share(policy, replace(chosen, world=world), PLAN), algorithm.groups


def written(groups: list[list[Trajectory]]) -> dict[str, set[str]]:
    return {group[0].question.id: {t.answer or "" for t in group} for group in groups}


def test_wrong_answers_alone_leave_nothing_to_learn_though_their_rewards_differ():
    measured, groups = share({})
    assert len({toy.lateness(t) for t in groups[0]}) > 1
    assert measured == 0


def test_groups_of_right_answers_do_not_count():
    texts = written(share({})[1])
    measured, groups = share({name: tuple(found) for name, found in texts.items()})
    right = sum(all(map(is_right, group)) for group in groups)
    assert 1 <= right < len(groups)  # in one group an episode wrote nothing
    assert measured == 1 - right / len(groups)


def test_the_share_counts_groups_with_both():
    texts = written(share({})[1])
    assert len(texts) == PLAN.warm_start_probe < len(toy.QUESTIONS)
    assert all(len(found) > 1 for found in texts.values())
    first, second, *_ = texts
    measured, groups = share({name: (sorted(texts[name])[-1],) for name in (first, second)})
    assert sum(any(map(is_right, group)) for group in groups) == 2
    assert measured == 0.5
