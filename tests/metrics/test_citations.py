"""Citation recall and precision by hand with a judge that knows which words must stand in the premise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sleuth.errors import ConfigError
from sleuth.metrics.citations import CitationScore, Cited, citation_report, sentences
from sleuth.types import Passage

ADA = Passage("1", "Ada", "ada born london")
BOTH = Passage("2", "Both", "ada born london died marylebone")
NONE = Passage("3", "Seine", "a river")
DIED = Passage("4", "Death", "died marylebone")
PASSAGES = (ADA, BOTH, NONE, DIED)


class Words:
    """Entailed if every word of the claim is in the premise; "unknown" has no verdict."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.calls = 0

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        self.calls += 1
        self.asked += pairs
        return [
            None if "unknown" in claim else float(set(claim.rstrip(".").split()) <= set(premise.split()))
            for premise, claim in pairs
        ]


def _score(text: str) -> CitationScore:
    return citation_report([Cited(text, PASSAGES)], Words(), "words").scores[0]


@pytest.mark.parametrize(
    ("text", "recall", "precision", "citations"),
    [
        ("ada born london [1].", 1.0, 1.0, 1),
        ("ada born london [3].", 0.0, 0.0, 1),
        ("ada born london.", 0.0, 0.0, 0),
        # Out of range: neither recall nor a citation, even though [1] would do.
        ("ada born london [1][9].", 0.0, 0.0, 0),
        ("ada born london [0].", 0.0, 0.0, 0),
        # [3] supports nothing alone and [1] does without it; [1] and [2] each support it alone.
        ("ada born london [1][3].", 1.0, 0.5, 2),
        ("ada born london [1][2].", 1.0, 1.0, 2),
        # Neither alone, but not without either.
        ("ada born died marylebone [1][4].", 1.0, 1.0, 2),
        # A fourth citation does not count.
        ("ada born london [3][3][3][1].", 0.0, 0.0, 3),
        ("ada born london [1]. Seine died [3].", 0.5, 0.5, 2),
        ("ada born london [1]. Seine", 0.5, 1.0, 1),
    ],
)
def test_one_answer(text: str, recall: float, precision: float, citations: int) -> None:
    score = _score(text)
    assert (score.recall, score.precision, score.citations) == (recall, precision, citations)


def test_a_missing_verdict_is_not_a_no() -> None:
    report = citation_report(
        [Cited("unknown [1].", PASSAGES), Cited("ada born london [1].", PASSAGES), Cited(" \n", PASSAGES)],
        Words(),
        "words",
    )
    assert report.scores[0] == CitationScore(None, None, 1, 1)
    assert report.scores[2] == CitationScore(None, None, 0, 0)
    assert (report.recall, report.precision, report.unjudged, report.empty) == (1.0, 1.0, 1, 1)


def test_nothing_to_judge() -> None:
    judge = Words()
    report = citation_report([], judge, "words")
    assert (report.recall, report.precision, report.scores, judge.calls) == (None, None, (), 0)
    assert citation_report([Cited("no citation.", ())], judge, "words").recall == 0.0
    only_marks = citation_report([Cited("[1][2].", PASSAGES)], judge, "words")
    assert (only_marks.recall, only_marks.empty) == (None, 1)
    assert judge.calls == 0


def test_of_a_repeated_citation_the_first_is_left_out() -> None:
    judge = Words()
    citation_report([Cited("ada born died marylebone [1][4][1].", PASSAGES)], judge, "words")
    premises = {premise.replace("Title: ", "").replace("\n", " ") for premise, _ in judge.asked}
    one, four = "Ada ada born london", "Death died marylebone"
    assert premises == {f"{one} {four} {one}", one, four, f"{four} {one}", f"{one} {one}"}


def test_the_judge_is_named_and_asked_in_rounds_and_never_twice() -> None:
    judge = Words()
    answers = [Cited("ada born london [1][3]. Seine river [3][2].", PASSAGES)] * 5
    report = citation_report(answers, judge, "words v1")
    assert report.judge == "words v1"
    assert judge.calls <= 3
    assert len(judge.asked) == len(set(judge.asked))
    with pytest.raises(ConfigError, match="must name its judge"):
        citation_report(answers, judge, " ")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("One [1]. Two [2][3].", ["One [1].", "Two [2][3]."]),
        ("One. [1] Two.", ["One. [1]", "Two."]),
        ("Dr. Who met J. R. Smith. He left.", ["Dr. Who met J. R. Smith.", "He left."]),
        ("He was 1.5 m tall, e.g. small.", ["He was 1.5 m tall, e.g. small."]),
        ("“Yes.” Then no.", ["“Yes.”", "Then no."]),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts
