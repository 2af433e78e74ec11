"""Parts of the adapters that need no engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.encoders.base import Encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.servers.search_engine import MOST_WORDS, bounded, check_marks, inside, marks, ranked
from sleuth.types import Hit, Passage


def test_a_field_inside_others():
    record = {"a": {"b": {"c": 1}}, "x.y": 3, "x": {"y": 4}, "n": None}
    assert inside(record, "a.b.c") == 1
    assert inside(record, "x.y") == 3  # a name with a dot in it comes first
    assert inside(record, "a.b") == {"c": 1}
    for name in ("b", "a.c", "x.y.z", "n.m", "a.", ".a", ""):
        assert inside(record, name) is None
    for value in (None, 3, "text", ["a"]):
        assert inside(value, "a") is None


def test_a_long_query_keeps_its_first_words():
    assert bounded("who wrote: Hamlet?") == "who wrote: Hamlet?"
    assert bounded("(word) " * MOST_WORDS + "more") == "word " * (MOST_WORDS - 1) + "word"
    assert bounded("東京" * 2_000) == " ".join("東京" * (MOST_WORDS // 2))


@given(st.text(max_size=4 * MOST_WORDS))
def test_no_query_is_longer_than_the_limit(query: str):
    kept = bounded(query)
    assert kept == query or len(kept.split()) <= MOST_WORDS


def test_ties_go_by_id():
    hits = [Hit(Passage(name, "", "t"), score) for name, score in (("c", 1.0), ("b", 2.0), ("a", 1.0))]
    assert [hit.passage.id for hit in ranked(hits, 2)] == ["b", "a"]


def test_a_collection_names_its_encoder(letters: Encoder, other_letters: Encoder):
    assert marks(None) == {}
    held = marks(letters)
    check_marks(held, letters, "here")
    check_marks({}, other_letters, "here")  # made by other software, which names no encoder
    message = r"^here was made by another encoder than this 'letters' \(by 'letters', "
    with pytest.raises(RetrievalError, match=message):
        check_marks(held, other_letters, "here")
