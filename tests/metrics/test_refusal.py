"""Refusals on one question and over a set: by hand and at the edges."""

import pytest

from sleuth.metrics.refusal import refusal, refusal_figures


@pytest.mark.parametrize(
    ("answerable", "refused", "figures"),
    [
        (True, True, (0.0, None, 1.0)),
        (True, False, (None, None, 0.0)),
        (False, True, (1.0, 1.0, None)),
        (False, False, (None, 0.0, None)),
    ],
)
def test_one_question(answerable: bool, refused: bool, figures: tuple[float | None, ...]) -> None:
    names = ("refusal_precision", "refusal_recall", "over_refusal")
    assert refusal(answerable, refused) == dict(zip(names, figures, strict=True))


ANSWERABLE = [True, True, True, True, False, False, False]
REFUSED = [False, False, False, True, True, True, False]
SCORES = [1.0, 0.5, 0.0, 1.0, 1.0, 0.0, 1.0]
COUNTS = ("answered_answerable", "refused_answerable", "answered_unanswerable", "refused_unanswerable")
REFUSING = ("precision", "recall", "f1", "over_refusal")
ANSWERING = ("answered_precision", "answered_recall", "answered_f1")


@pytest.mark.parametrize(
    ("answerable", "refused", "scores", "counts", "refusing", "answering"),
    [
        # 1.5 right of 4 answered and of 4 answerable; the refused question's score and the last row's count nothing.
        (ANSWERABLE, REFUSED, SCORES, (3, 1, 1, 2), (2 / 3, 2 / 3, 4 / 6, 0.25), (0.375, 0.375, 0.375)),
        ([True, False], [True, True], [0.0, 0.0], (0, 1, 0, 1), (0.5, 1.0, 2 / 3, 1.0), (None, 0.0, 0.0)),
        ([True], [False], [1.0], (1, 0, 0, 0), (None, None, None, 0.0), (1.0, 1.0, 1.0)),
        ([], [], [], (0, 0, 0, 0), (None, None, None, None), (None, None, None)),
    ],
    ids=["mixed", "all refused", "none refused", "no questions"],
)
def test_a_set_of_questions(answerable, refused, scores, counts, refusing, answering):
    figures = refusal_figures(answerable, refused, scores)
    assert tuple(figures[name] for name in COUNTS) == counts
    assert tuple(figures[name] for name in REFUSING) == refusing
    assert tuple(figures[name] for name in ANSWERING) == answering
    assert set(figures) == {*COUNTS, *REFUSING, *ANSWERING}
