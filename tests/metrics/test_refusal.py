"""Refusals counted over a set of questions: by hand and at the edges."""

from __future__ import annotations

import pytest

from sleuth.errors import DataError
from sleuth.metrics.refusal import Refusals, refusals


def test_by_hand() -> None:
    counts = refusals(
        [True, True, True, True, False, False, False],
        [False, False, False, True, True, True, False],
        [1.0, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0],
    )
    assert counts == Refusals(3, 1, 1, 2, 1.5)
    assert (counts.precision, counts.recall, counts.f1) == (2 / 3, 2 / 3, 4 / 6)
    assert counts.over_refusal == 0.25
    # 1.5 right of 4 answered and of 4 answerable; the refused question's score and the last row's count nothing.
    assert (counts.answered_precision, counts.answered_recall, counts.answered_f1) == (0.375, 0.375, 0.375)


def test_everything_refused() -> None:
    counts = refusals([True, False], [True, True], [0.0, 0.0])
    assert (counts.precision, counts.recall, counts.over_refusal) == (0.5, 1.0, 1.0)
    assert (counts.answered_precision, counts.answered_recall, counts.answered_f1) == (None, 0.0, 0.0)


def test_nothing_refused_and_all_answerable() -> None:
    counts = refusals([True], [False], [1.0])
    assert (counts.precision, counts.recall, counts.f1, counts.over_refusal) == (None, None, None, 0.0)
    assert counts.answered_f1 == 1.0


def test_no_questions_and_unequal_lengths() -> None:
    counts = refusals([], [], [])
    assert (counts.precision, counts.recall, counts.f1, counts.answered_f1) == (None, None, None, None)
    with pytest.raises(DataError, match="1 labels, 2 decisions and 1 scores"):
        refusals([True], [True, True], [1.0])
