"""Citation recall and precision by hand, with a judge that compares words."""

from collections.abc import Sequence

import pytest

from sleuth.metrics.citations import CitationScore, Cited, score_citations, sentences
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
    (score,) = score_citations([Cited(text, PASSAGES)], Words())
    assert (score.recall, score.precision, score.citations) == (recall, precision, citations)


def test_a_missing_verdict_is_not_a_no() -> None:
    texts = ("unknown [1].", "ada born london [1].", " \n", "[1][2].")
    assert score_citations([Cited(text, PASSAGES) for text in texts], Words()) == [
        CitationScore(None, None, 1, 1),
        CitationScore(1.0, 1.0, 1, 1),
        CitationScore(None, None, 0, 0),
        CitationScore(None, None, 0, 0),
    ]


def test_the_judge_is_not_asked_without_citations() -> None:
    judge = Words()
    assert score_citations([], judge) == []
    assert score_citations([Cited("no citation.", ())], judge) == [CitationScore(0.0, 0.0, 1, 0)]
    assert judge.calls == 0


def test_the_first_of_repeated_citations_is_left_out() -> None:
    judge = Words()
    score_citations([Cited("ada born died marylebone [1][4][1].", PASSAGES)], judge)
    premises = {premise.replace("Title: ", "").replace("\n", " ") for premise, _ in judge.asked}
    one, four = "Ada ada born london", "Death died marylebone"
    assert premises == {f"{one} {four} {one}", one, four, f"{four} {one}", f"{one} {one}"}


def test_the_judge_is_asked_in_at_most_three_batches_and_never_twice() -> None:
    judge = Words()
    score_citations([Cited("ada born london [1][3]. Seine river [3][2].", PASSAGES)] * 5, judge)
    assert judge.calls <= 3
    assert len(judge.asked) == len(set(judge.asked))


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
