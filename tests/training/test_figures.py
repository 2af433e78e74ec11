"""Batch figures against numbers computed by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest

from sleuth.training.figures import reward_figures, rollout_figures
from sleuth.types import Action, Field, Question, Score, Segment, Trajectory

QUESTION = Question("q", "?", ("a",))


def episode(
    length: int,
    total: float | None,
    *,
    searches: int = 0,
    stop: str = "eos",
    answer: str = "y",
    **fields: Any,
) -> Trajectory:
    segments = Segment("prompt", "p", (1, 2)), Segment("policy", "", tuple(range(length)), stop=stop)
    actions = (Action("search", "x", 0),) * searches + (Action("answer", answer, 0),)
    if total is not None:
        fields["score"] = Score(total, {"half": total / 2}, "" if math.isfinite(total) else "NaN")
    return Trajectory(QUESTION, segments, actions, ending="answered", **fields)


def test_rollout_figures_by_hand() -> None:
    groups = [
        [episode(2, 1.0, searches=1, answer="A"), episode(4, 0.0, malformed="bad", stop="length")],
        [episode(9, None, fault="retriever down"), episode(6, math.nan, searches=2)],
    ]
    assert rollout_figures(groups) == {
        "rollouts/episodes": 4,
        "rollouts/faults": 1,
        "rollouts/invalid": 1,
        "rollouts/right": pytest.approx(1 / 3),
        "rollouts/valid_format": pytest.approx(2 / 3),
        "rollouts/answered": 1,
        "rollouts/refused": 0,
        "rollouts/truncated": pytest.approx(1 / 3),
        "rollouts/searches": 1,
        "rollouts/repeated": pytest.approx(1 / 3),
        "rollouts/actions": 2,
        "rollouts/invalid_actions": 0,
        "rollouts/turns": 1,
        "rollouts/sequence_length": 6,
        "rollouts/state_tokens": 12,
        "rollouts/query_words": 1,
        "rollouts/response_length": 4,
        "rollouts/longest_response": 6,
    }


def test_reward_figures_by_hand() -> None:
    second = replace(episode(1, 1.0), question=replace(QUESTION, id="second"))
    groups = [
        [episode(1, 1.0), episode(1, 0.0)],
        [second, replace(second)],
        [episode(1, math.nan), episode(1, None, fault="x")],
    ]
    assert reward_figures(groups) == {
        "reward/total": 0.75,
        "reward/total_se": pytest.approx(0.25),
        "reward/half": 0.375,
        "reward/half_se": pytest.approx(0.125),
        "reward/zero_variance": 0.5,
    }


def test_a_part_that_is_not_a_number_does_not_spoil_the_total() -> None:
    broken = Trajectory(QUESTION, (), score=Score(1.0, {"odd": math.nan, "total": 5.0}))
    figures = reward_figures([[broken, broken]])
    assert figures["reward/total"] == 1.0
    assert math.isnan(figures["reward/odd"])
    assert math.isnan(figures["reward/total_se"])  # one question has no spread


def test_nothing_usable_gives_counts_only() -> None:
    groups = [[episode(3, None, fault="down")]]
    assert rollout_figures(groups) == {"rollouts/episodes": 1, "rollouts/faults": 1, "rollouts/invalid": 0}
    assert reward_figures(groups) == {}


def test_words_of_each_kind_of_section() -> None:
    def noted(*bodies: str) -> Trajectory:
        fields = tuple(Field("note", body, 1, 0, len(body)) for body in bodies)
        return replace(episode(3, 1.0), fields=fields)

    figures = rollout_figures([[noted("one two", "three"), noted("four"), episode(3, 1.0)]])
    assert figures["rollouts/words/note"] == pytest.approx((3 + 1 + 0) / 3)
