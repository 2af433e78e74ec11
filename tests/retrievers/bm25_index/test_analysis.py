import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.bm25_index.analysis import LONGEST_WORD, STOP_WORDS, folded, query_terms, terms


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


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("İstanbul İZMİR", "Istanbul izmir"),
        ("Αθήνα ΟΔΟΣ ᾠδῇ", "αθηνα οδος ωδη"),
        ("ёлка йод", "елка иод"),
        ("Ǧ Việt", "g Viet"),
        ("أَحْمَد محمـــد", "احمد محمد"),
        ("שָׁלוֹם", "שלום"),
        ("क़िला", "किला"),
    ],
)
def test_case_and_accents_are_folded_in_every_script(text: str, plain: str):
    assert terms(text) == terms(plain)
    assert len(terms(text)) == len(plain.split())


@pytest.mark.parametrize("hidden", "\u00ad\u034f\u061c\u180b\u200c\u200d\u200e\u202a\u2060\u2066\ufe0f\ufeff")
def test_invisible_characters_divide_no_word(hidden: str):
    assert terms(f"Ver{hidden}rin") == ["verrin"]


def test_virama_and_vowel_sign_divide_no_word():
    assert len(terms("हिन्दी বাংলা தமிழ்")) == 3


def test_zero_width_space_divides_words():
    assert terms("Odo\u200bVerrin") == ["odo", "verrin"]


def test_marks_that_make_another_letter_stay():
    assert terms("が") == terms("か\u3099") == terms("か\uff9e")
    assert terms("が") != terms("か")
    assert terms("한국") == terms("\u1112\u1161\u11ab\u1100\u116e\u11a8") == ["한국"]


@pytest.mark.parametrize("marks", ["\u3099\u0e38", "\uff9e\u0f71", "\u0f73\u3099", "\u0301\u0316"])
def test_a_run_of_marks_is_cut_before_it_is_sorted(marks: str):
    """Python's normalising takes quadratic time for it: seconds for these."""
    assert len(folded("か" + marks * 40_000)) < 100


def test_the_short_way_for_latin_finds_what_the_long_way_finds():
    for code in (*range(0x80, 0x250), *range(0x1E00, 0x2070)):
        text = f"a{chr(code)}b"
        assert terms(f"{text} Ω") == [*terms(text), "ω"]


def test_query_drops_stop_words_and_repeats():
    assert query_terms("What is the capital of the Capital?") == ["capit"]


def test_query_of_only_stop_words_keeps_them():
    assert query_terms("To be or not to be") == ["to", "be", "or", "not"]
    assert query_terms("The Who") == ["the", "who"]


@pytest.mark.parametrize("word", STOP_WORDS)
def test_every_stop_word_is_dropped_in_any_case(word: str):
    assert query_terms(f"{word} {word.upper()} zebra") == ["zebra"]


@given(st.text(st.characters(), max_size=200))
def test_query_terms_are_terms_of_the_same_text(text: str):
    """Query terms are terms of the same text as a passage, and none is lost but stop words."""
    indexed, asked = terms(text), query_terms(text)
    assert set(asked) <= set(indexed)
    assert bool(asked) == bool(indexed)
    assert len(set(asked)) == len(asked)


@given(st.text(st.characters(), max_size=200))
def test_folded_text_can_be_encoded(text: str):
    folded(text).encode()


def test_lone_surrogate_is_no_word():
    assert query_terms("\ud800 dog") == ["dog"]
