import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.bm25_index.analysis import LONGEST_WORD, STOP_WORDS, folded, query_terms, terms, valid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The running dogs' café", ["the", "run", "dog", "cafe"]),
        ("U.S. 3.14 co-op", ["u", "s", "3", "14", "co", "op"]),
        ('AND ( field:x "quotes" hamlet^ *', ["and", "field", "x", "quot", "hamlet"]),
        ("a\x00b\n\tc", ["a", "b", "c"]),
        ("東京 タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("", []),
        ("— … 😀 \u200b", []),
        ("x" * LONGEST_WORD, []),
    ],
)
def test_terms(text: str, expected: list[str]):
    assert terms(text) == expected


def test_one_spelling_for_composed_decomposed_ligature_and_full_width():
    assert terms("cafe\u0301 ﬁnd Ｗｏｒｄ") == terms("café find word")


def test_query_drops_stop_words_and_repeats():
    assert query_terms("What is the capital of the Capital?") == ["capit"]


def test_query_of_only_stop_words_keeps_them():
    assert query_terms("To be or not to be") == ["to", "be", "or", "not"]
    assert query_terms("The Who") == ["the", "who"]


@pytest.mark.parametrize("word", STOP_WORDS)
def test_every_stop_word_is_dropped_in_any_case(word: str):
    assert query_terms(f"{word} {word.upper()} zebra") == ["zebra"]


@given(st.text(st.characters(), max_size=200))
def test_what_a_text_is_asked_by_is_what_it_is_found_by(text: str):
    """Query terms are terms of the same text as a passage, and none is lost but stop words."""
    indexed, asked = terms(text), query_terms(text)
    assert set(asked) <= set(indexed)
    assert bool(asked) == bool(indexed)
    assert len(set(asked)) == len(asked)


@given(st.text(st.characters(), max_size=200))
def test_valid_is_storable_and_folding_is_too(text: str):
    assert len(valid(text)) == len(text)
    assert valid(text).encode().decode() == valid(text)
    folded(text).encode()


def test_lone_surrogate_becomes_the_replacement_character():
    assert valid("a\ud800b\udfff") == "a\ufffdb\ufffd"
    assert query_terms("\ud800 dog") == ["dog"]
