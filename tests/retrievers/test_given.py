"""Given paragraphs, searched or not, and no passages at all."""

import math

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.dense import Dense
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.given import AllGiven, GivenParagraphs
from sleuth.retrievers.hybrid import Hybrid
from sleuth.retrievers.none import NoRetriever
from sleuth.retrievers.rerank import Rerank
from sleuth.types import Passage, Question
from support.fixed_retriever import Fixed

PASSAGES = (
    Passage("b", "Bridge", "The old bridge crosses a river."),
    Passage("a", "River", "A river runs to the sea."),
    Passage("c", "Empty", ""),
)
QUESTION = Question("q1", "Where?", ("sea",), passages=PASSAGES)


def found(query: str, k: int = 5, passages: tuple[Passage, ...] = PASSAGES) -> list[str]:
    retriever = GivenParagraphs().for_question(Question("q", "?", (), passages=passages))
    return [hit.passage.id for hit in retriever.search([query], k)[0]]


def test_score_by_hand():
    # Lengths with title and stop words: 7, 7, 1; mean 5. "rivers" stems to "river", in 2 of 3; twice in "a".
    idf = math.log(1 + 1.5 / 2.5)
    norm = 1.2 * (0.25 + 0.75 * 7 / 5)
    expected = [("a", idf * 2 * 2.2 / (2 + norm)), ("b", idf * 2.2 / (1 + norm))]
    hits = GivenParagraphs().for_question(QUESTION).search(["Rivers?"], 5)[0]
    assert [hit.passage.id for hit in hits] == [name for name, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected])


def test_only_what_matches_and_at_most_k():
    assert found("bridge sea") == ["b", "a"]  # "bridge" twice, title and text
    assert found("bridge sea", k=1) == ["b"]
    assert found("mountain") == []
    assert found("") == []
    assert found("the") == ["a", "b"]  # nothing but a stop word, so it counts; "a" holds fewer others


def test_ties_by_id_and_repeated_ids_once():
    same = tuple(Passage(name, "", "word") for name in "dbca")
    assert found("word", passages=same) == ["a", "b", "c", "d"]
    assert found("word", passages=(*same, Passage("a", "", "other"))) == ["a", "b", "c", "d"]
    assert found("other", passages=(*same, Passage("a", "", "other"))) == []


def test_all_empty_paragraphs_find_nothing():
    assert found("word", passages=(Passage("a", "", ""),)) == []


def test_all_given_returns_every_passage_in_order():
    retriever = AllGiven().for_question(QUESTION)
    for query in ("river", "", "the", "nothing like it"):
        (hits,) = retriever.search([query], 20)
        assert [hit.passage for hit in hits] == list(PASSAGES)
        assert len({hit.score for hit in hits}) == 1
    assert [[hit.passage.id for hit in hits] for hits in retriever.search(["x", "y"], 2)] == [["b", "a"]] * 2


@pytest.mark.parametrize("retriever", [GivenParagraphs(), AllGiven()])
def test_given_passages_need_a_question_that_has_some(retriever: Retriever):
    with pytest.raises(RetrievalError, match="only for a question"):
        retriever.search(["x"], 1)
    with pytest.raises(RetrievalError, match="'q7' comes without passages"):
        retriever.for_question(Question("q7", "?", ()))


def test_no_retriever_finds_nothing():
    assert NoRetriever().search(["Paris", ""], 3) == [[], []]
    assert NoRetriever().search([], 3) == []


PAIR = Fusion((Fixed("a"), Fixed("b")))
WITHOUT_INDEX = [BM25(), Dense(), Hybrid(), PAIR, Rerank(Fixed("a")), NoRetriever()]


@pytest.mark.parametrize("retriever", [GivenParagraphs(), AllGiven(), *WITHOUT_INDEX])
def test_bad_queries_and_k(retriever: Retriever):
    retriever = retriever.for_question(QUESTION)
    for k in (0, -1, True, "3", 2.5, None):
        with pytest.raises(RetrievalError, match="k must be a whole number"):
            retriever.search(["river"], k)  # type: ignore[arg-type]
    for queries, message in (("river", "not the text"), ([None], "must be text, not None")):
        with pytest.raises(RetrievalError, match=message):
            retriever.search(queries, 1)  # type: ignore[arg-type]


def test_identities():
    identity = GivenParagraphs().identity()
    assert (identity["retriever"], identity["k1"], identity["b"]) == ("given", "1.2", "0.75")
    assert AllGiven().identity() == {"retriever": "given-all"}
    assert NoRetriever().identity() == {"retriever": "none"}
