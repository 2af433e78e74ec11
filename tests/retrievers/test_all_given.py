import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.all_given import AllGiven
from sleuth.types import Passage, Question

PASSAGES = tuple(Passage(name, "", text) for name, text in [("b", "tea"), ("a", ""), ("c", "milk")])


def test_every_passage_in_its_order_whatever_is_asked():
    retriever = AllGiven().for_question(Question("q", "?", (), PASSAGES))
    for query in ("milk", "", "the", "nothing like it"):
        ((first, second, third),) = retriever.search([query], 20)
        assert [first.passage, second.passage, third.passage] == list(PASSAGES)
        assert first.score == second.score == third.score


def test_no_more_than_asked_for():
    found = AllGiven().for_question(Question("q", "?", (), PASSAGES)).search(["x", "y"], 2)
    assert [[hit.passage.id for hit in hits] for hits in found] == [["b", "a"], ["b", "a"]]


def test_misuse():
    with pytest.raises(RetrievalError, match="only for a question"):
        AllGiven().search(["x"], 1)
    with pytest.raises(RetrievalError, match="'q7' comes without passages"):
        AllGiven().for_question(Question("q7", "?", ()))
    given = AllGiven().for_question(Question("q", "?", (), PASSAGES))
    with pytest.raises(RetrievalError, match="at least 1"):
        given.search(["x"], 0)
    with pytest.raises(RetrievalError, match="not the text"):
        given.search("x", 1)


def test_identity():
    assert AllGiven().identity() == {"retriever": "given-all"}
