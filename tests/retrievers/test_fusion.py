from itertools import combinations

import pytest

from sleuth.errors import ConfigError, RetrievalError
from sleuth.registry import resolve
from sleuth.retrievers import RETRIEVERS
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.fusion import Fusion
from sleuth.retrievers.given import GivenParagraphs
from sleuth.types import Passage, Question
from support.fixed_retriever import Fixed, Shown


def test_by_hand():
    (hits,) = Fusion((Fixed("abc"), Fixed("cd"))).search(["q"], 10)
    assert [(h.passage.id, h.score) for h in hits] == [
        ("c", pytest.approx(1 / 63 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("b", pytest.approx(1 / 62)),  # ties with d, before it by id
        ("d", pytest.approx(1 / 62)),
    ]
    assert [h.passage.id for h in Fusion((Fixed("abc"), Fixed("cd"))).search(["q"], 2)[0]] == ["c", "a"]


def test_equal_ranks_tie_whatever_retrievers_they_come_from():
    for ranks in combinations(range(20), 3):
        one, other = (dict(zip(ranks, order, strict=True)) for order in ((0, 1, 2), (2, 0, 1)))
        parts = [["-"] * 21 for _ in range(3)]
        for rank in ranks:
            parts[one[rank]][rank], parts[other[rank]][rank] = "z", "a"
        rankings = tuple(Fixed("".join(part)) for part in parts)
        scores = {hit.passage.id: hit.score for hit in Fusion(rankings).search(["q"], 100)[0]}
        assert scores["a"] == scores["z"]


def test_small_k_of_the_formula_favours_first_ranks():
    three = (Fixed("ab"), Fixed("cb"), Fixed("db"))
    assert Fusion(three).search(["q"], 1)[0][0].passage.id == "b"
    assert Fusion((Fixed("ayzb"), Fixed("cwvb")), k=1).search(["q"], 1)[0][0].passage.id == "a"


def test_depth_limits_the_fused_passages_but_never_below_k():
    pair = (Fixed("abc"), Fixed("dec"))
    assert [h.passage.id for h in Fusion(pair, depth=2).search(["q"], 1)[0]] == ["a"]
    assert [h.passage.id for h in Fusion(pair, depth=1).search(["q"], 3)[0]] == ["c", "a", "d"]


def test_for_question_reaches_every_part():
    question = Question("q", "?", (), passages=(Passage("g", "", "apple"),))
    fusion = Fusion((GivenParagraphs(), Fixed("ab")))
    assert {h.passage.id for h in fusion.for_question(question).search(["apple"], 5)[0]} == {"g", "a", "b"}
    plain = Fusion((Fixed("a"), Fixed("b")))
    assert plain.for_question(question) is plain


def test_bad_settings_and_failing_parts():
    with pytest.raises(ConfigError, match="two retrievers or more, not 0"):
        Fusion()
    with pytest.raises(RetrievalError, match="no index given"):
        Fusion((Fixed("a"), BM25())).search(["q"], 1)
    identity = Fusion((GivenParagraphs(), Fixed("a"))).identity()
    assert [identity[f"{part}retriever"] for part in ("", "0.", "1.")] == ["fusion", "given", "Fixed"]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_registered_names_resolve(name: str):
    assert issubclass(resolve("retrievers", RETRIEVERS, name), Retriever)


def test_different_passages_of_one_id_are_not_fused():
    one, other = (Shown((Passage("1", "", text),)) for text in ("Paris is in France.", "Rome is in Italy."))
    with pytest.raises(RetrievalError, match="different passages with the id '1'"):
        Fusion((one, other)).search(["q"], 5)
    again = Shown((Passage("1", "", "paris is in France"),))
    assert len(Fusion((one, again)).search(["q"], 5)[0]) == 1
