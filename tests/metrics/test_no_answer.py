"""SQuAD 2.0's thresholds by hand; agreement with the script is in tests/golden."""

import pytest

from sleuth.metrics.no_answer import BestThreshold, NoAnswer, best_threshold

SURE = NoAnswer(1.0, answerable=True, gave_text=True, probability=0.1)
UNSURE = NoAnswer(1.0, answerable=True, gave_text=True, probability=0.7)
NONE = NoAnswer(0.0, answerable=False, gave_text=True, probability=0.5)
BLANK = NoAnswer(1.0, answerable=False, gave_text=False, probability=0.9)
LOGIT = NoAnswer(1.0, answerable=True, gave_text=True, probability=-3.5)


@pytest.mark.parametrize(
    ("questions", "best"),
    [
        # Below 0.1 only NONE is right; at 0.1 SURE too; at 0.5 NONE is lost; at 0.7 UNSURE is won, which ties.
        ([UNSURE, NONE, SURE], BestThreshold(2 / 3, 0.1)),
        ([NONE], BestThreshold(1.0, 0.0)),
        ([BLANK], BestThreshold(1.0, 0.0)),
        ([LOGIT], BestThreshold(1.0, -3.5)),
        ([], None),
    ],
)
def test_the_best_threshold_is_the_first_of_equals(questions: list[NoAnswer], best: BestThreshold | None):
    assert best_threshold(questions) == best
