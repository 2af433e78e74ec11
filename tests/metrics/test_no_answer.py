"""SQuAD 2.0's thresholds by hand; agreement with the script is in tests/golden."""

from __future__ import annotations

import math

import pytest

from sleuth.errors import DataError
from sleuth.metrics.no_answer import BestThreshold, NoAnswer, best_threshold, score_at

SURE = NoAnswer(1.0, answerable=True, gave_text=True, probability=0.1)
UNSURE = NoAnswer(1.0, answerable=True, gave_text=True, probability=0.7)
NONE = NoAnswer(0.0, answerable=False, gave_text=True, probability=0.5)


def test_an_answer_above_the_threshold_counts_as_empty() -> None:
    assert score_at(UNSURE, 0.7) == 1.0
    assert score_at(UNSURE, 0.69) == 0.0
    assert score_at(NONE, 0.4) == 1.0
    assert score_at(NONE, 0.5) == 0.0


def test_the_best_threshold_keeps_the_first_of_equals() -> None:
    # Below 0.1 only NONE is right; at 0.1 SURE as well; at 0.5 NONE is lost; at 0.7 UNSURE is won: 2 of 3 again.
    assert best_threshold([UNSURE, NONE, SURE]) == BestThreshold(2 / 3, 0.1)


def test_refusing_everything_may_be_best() -> None:
    assert best_threshold([NONE]) == BestThreshold(1.0, 0.0)
    assert best_threshold(
        [NoAnswer(1.0, answerable=False, gave_text=False, probability=0.9)]
    ) == BestThreshold(1.0, 0.0)


def test_no_questions_and_no_numbers() -> None:
    assert best_threshold([]) is None
    bad = NoAnswer(1.0, answerable=True, gave_text=True, probability=math.nan)
    with pytest.raises(DataError, match="finite number, not nan"):
        best_threshold([bad])
    with pytest.raises(DataError, match="finite number, not nan"):
        score_at(bad, 0.5)


def test_any_scale_will_do() -> None:
    logits = [NoAnswer(1.0, answerable=True, gave_text=True, probability=-3.5)]
    assert best_threshold(logits) == BestThreshold(1.0, -3.5)
