"""Which siblings become a pair: the thresholds of §3.3 and §3.4, by hand."""

import math

import pytest

from sleuth.errors import RewardError
from sleuth.recipes.evo_rag.pairs import Candidate, all_pairs, best_pair
from sleuth.types import Action, Question, Segment, Trajectory


def candidate(value: float, text: str = "", kind: str = "search") -> Candidate:
    name = text or str(value)
    segments = (Segment("prompt", "", (1,)), Segment("policy", name, (2,)))
    return Candidate(Trajectory(Question("q", "?", ()), segments, (Action(kind, name, 1),)), value)


def values(*numbers: float, margin: float) -> list[tuple[str, str]]:
    pairs = all_pairs([candidate(n) for n in numbers], margin)
    return [(p.chosen.actions[0].text, p.rejected.actions[0].text) for p in pairs]


def test_every_pair_that_is_far_enough_apart():
    assert values(0.1, 0.9, 0.5, margin=0.3) == [("0.9", "0.1"), ("0.5", "0.1"), ("0.9", "0.5")]
    assert values(0.1, 0.9, 0.65, margin=0.3) == [("0.9", "0.1"), ("0.65", "0.1")]


def test_the_threshold_itself_is_enough_whatever_binary_makes_of_it():
    assert 0.7 - 0.4 < 0.3
    assert values(0.4, 0.7, margin=0.3) == [("0.7", "0.4")]
    assert values(0.4, 0.6999, margin=0.3) == []


def test_equal_returns_are_no_preference_even_without_a_margin():
    assert all_pairs([candidate(1.0, "a"), candidate(1.0, "b")], 0.0) == []


def test_the_same_action_is_no_pair():
    same = [candidate(1.0, "dogs"), candidate(0.0, "dogs")]
    assert all_pairs(same, 0.2) == []
    assert len(all_pairs([candidate(1.0, "dogs"), candidate(0.0, "dogs", "answer")], 0.2)) == 1


def test_one_pair_per_state_the_furthest_apart():
    pair = best_pair([candidate(v) for v in (0.5, 0.1, 0.9, 0.1001)], 0.2)
    assert pair is not None
    assert (pair.chosen.actions[0].text, pair.rejected.actions[0].text) == ("0.9", "0.1")
    assert pair.margin == pytest.approx(0.8)
    assert best_pair([candidate(0.5), candidate(0.6)], 0.2) is None
    assert best_pair([], 0.2) is None


def test_a_value_that_is_no_number():
    with pytest.raises(RewardError, match="nan"):
        all_pairs([candidate(math.nan, "a"), candidate(1.0)], 0.2)
