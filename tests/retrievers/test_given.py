import math
from dataclasses import asdict

import pytest

from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.given import GivenParagraphs
from sleuth.types import Passage, Question

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
    assert [(hit.passage.id, hit.score) for hit in hits] == [
        (i, pytest.approx(score)) for i, score in expected
    ]


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


def test_only_for_a_question_that_brings_passages():
    with pytest.raises(RetrievalError, match="for a question"):
        GivenParagraphs().search(["river"], 1)
    with pytest.raises(RetrievalError, match="'q7' comes without passages"):
        GivenParagraphs().for_question(Question("q7", "Who?", ("x",)))


@pytest.mark.parametrize("k", [0, True, "3"])
def test_bad_k(k: object):
    with pytest.raises(RetrievalError, match="k must be"):
        GivenParagraphs().for_question(QUESTION).search(["river"], k)  # type: ignore[arg-type]


@pytest.mark.parametrize(("k1", "b"), [(-1.0, 0.5), (math.nan, 0.5), (1.2, 1.5), (1.2, math.nan)])
def test_bad_parameters(k1: float, b: float):
    with pytest.raises(ConfigError):
        GivenParagraphs(k1=k1, b=b)


def test_is_plain_config():
    assert asdict(GivenParagraphs()) == {"k1": 1.2, "b": 0.75}
    assert GivenParagraphs().identity()["retriever"] == "given"
