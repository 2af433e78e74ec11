"""MuSiQue's groups: both labels must be right, and what is not a pair is wrong."""

from sleuth.metrics.sufficiency import Groups, Twin, group_scores


def test_a_missing_answer_scores_nothing_though_the_labels_are_right() -> None:
    groups = group_scores([Twin("q", True, True, None), Twin("q", False, False)])
    assert (groups.scores, groups.sufficiency) == ({"q": 0.0}, {"q": 1.0})


def test_groups_that_are_no_pair_are_wrong_and_named() -> None:
    twins = [Twin(name, True, True, 1.0) for name in ("alone", "two", "two", "three")]
    groups = group_scores([*twins, Twin("three", False, False), Twin("three", False, False)])
    assert groups.incomplete == ("alone", "two", "three")
    assert set(groups.scores.values()) == {0.0}
    assert group_scores([]) == Groups({}, {}, ())
