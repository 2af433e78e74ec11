from collections.abc import Sequence

import pytest

from sleuth.errors import ConfigError
from sleuth.retrievers.all_given import AllGiven
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.perturbed.withholding import Withholding
from sleuth.types import Hit, Passage, Question

PASSAGES = tuple(Passage(f"p{i}", f"T{i}", f"river number {i}") for i in range(5))
QUESTION = Question("q", "Which river?", ("Rhine",), PASSAGES, ("p1", "p3", "p4"))


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def test_gold_is_never_found_and_leaves_no_gap():
    retriever = Withholding(AllGiven(), 3).for_question(QUESTION)
    assert ids(retriever.search(["x"], 5)[0]) == ["p0", "p2"]
    assert ids(retriever.search(["x"], 1)[0]) == ["p0"]
    searched = Withholding(GivenParagraphs(), 3).for_question(QUESTION).search(["river", "number"], 2)
    assert [sorted(ids(hits)) for hits in searched] == [["p0", "p2"], ["p0", "p2"]]


def test_at_most_all_gold_passages_are_withheld_and_more_include_fewer():
    retrievers = [Withholding(AllGiven(), withheld).for_question(QUESTION) for withheld in (0, 1, 2, 3, 9)]
    shown = [set(ids(retriever.search(["x"], 9)[0])) for retriever in retrievers]
    assert [len(found) for found in shown] == [5, 4, 3, 2, 2]
    assert shown[0] > shown[1] > shown[2] > shown[3] == shown[4]


def test_identity_names_level_and_retriever():
    identity = {"retriever": "withholding", "withheld": "2", "of.retriever": "given-all"}
    assert Withholding(AllGiven(), 2).identity() == identity
    with pytest.raises(ConfigError, match="-1"):
        Withholding(withheld=-1)
