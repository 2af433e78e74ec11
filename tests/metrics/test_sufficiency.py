"""MuSiQue's groups: both labels must be right, and what is not a pair is wrong."""

from __future__ import annotations

import pytest

from sleuth.metrics.sufficiency import Groups, Twin, group_scores


@pytest.mark.parametrize(
    ("says", "twin_says", "score"),
    [(True, False, 0.6), (True, True, 0.0), (False, False, 0.0), (None, False, 0.0), (True, None, 0.0)],
)
def test_a_group_scores_only_if_both_labels_are_right(
    says: bool | None, twin_says: bool | None, score: float
) -> None:
    groups = group_scores([Twin("q", False, twin_says), Twin("q", True, says, 0.6)])
    assert groups.scores == {"q": score}
    assert groups.sufficiency == {"q": float(score > 0)}
    assert groups.incomplete == ()


def test_a_missing_answer_scores_nothing_though_the_labels_are_right() -> None:
    groups = group_scores([Twin("q", True, True, None), Twin("q", False, False)])
    assert (groups.scores, groups.sufficiency) == ({"q": 0.0}, {"q": 1.0})


def test_groups_that_are_no_pair_are_wrong_and_named() -> None:
    twins = [Twin(name, True, True, 1.0) for name in ("alone", "two", "two", "three")]
    groups = group_scores([*twins, Twin("three", False, False), Twin("three", False, False)])
    assert groups.incomplete == ("alone", "two", "three")
    assert set(groups.scores.values()) == {0.0}
    assert group_scores([]) == Groups({}, {}, ())
