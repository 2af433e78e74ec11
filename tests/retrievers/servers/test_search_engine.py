"""Parts of the adapters that need no engine."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.servers.search_engine import MOST_WORDS, bounded, inside


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
