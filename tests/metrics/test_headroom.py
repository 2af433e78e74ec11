"""Figures of repeated samples, worked out by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.metrics.headroom import Samples, histogram, surprise
from sleuth.types import Field, Question, Segment, Trajectory


def samples(*answers: str | None) -> Samples:
    """Samples of a question whose right answer is "a"."""
    return Samples(tuple(answer == "a" for answer in answers), answers)


def test_mean_pass_and_majority_by_hand():
    found = samples("a", "b", "b", "a", None)
    assert found.rate == 0.4
    # 1 − C(3, 2)/C(5, 2) = 1 − 3/10
    assert [found.pass_at(k) for k in (1, 2, 4, 5)] == pytest.approx([0.4, 0.7, 1.0, 1.0])
    assert found.majority == 0.5  # a and b are equally frequent
    assert samples("b", "b", "a").majority == 0.0
    assert samples("a", "a", "b").majority == 1.0
    assert samples(None, None).majority == 0.0


def test_a_refusal_is_an_answer_of_the_majority():
    assert Samples((True, True, False), ("", "", "b")).majority == 1.0
    assert Samples((False, False, True), ("", "", "b")).majority == 0.0


def test_live_groups_and_the_histogram():
    groups = [samples("a", "a"), samples("a", "b"), samples("b", "b"), samples("b", "a")]
    assert [group.is_live for group in groups] == [False, True, False, True]
    assert histogram(groups) == [1, 2, 1]
    assert histogram([]) == [0]


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_pass_at_k_rises_from_mean_to_any(right: list[bool]):
    found = Samples(tuple(right), ("x",) * len(right))
    values = [found.pass_at(k) for k in range(1, len(right) + 1)]
    assert values[0] == pytest.approx(found.rate)
    assert values == sorted(values)
    assert values[-1] == float(any(right))


def test_surprise_is_the_mean_over_tokens_inside_the_last_block():
    text = "<search>ab</search>"
    ends = (8, 9, 10, 19)
    segment = Segment("policy", text, (1, 2, 3, 4), (-9.0, math.log(0.5), math.log(0.25), -9.0), ends)
    segments = (Segment("prompt", "?", (0,)), segment)
    trajectory = Trajectory(Question("q", "?", ()), segments, fields=(Field("search", "ab", 1, 8, 10),))
    assert surprise(trajectory, "search") == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert surprise(trajectory, "answer") is None
    without = replace(trajectory, segments=(segments[0], replace(segment, logprobs=())))
    assert surprise(without, "search") is None  # an endpoint that reports none
