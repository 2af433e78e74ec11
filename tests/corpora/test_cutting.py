import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.corpora.cutting import CHARACTERS_PER_WORD, cut


def test_cuts_fall_between_paragraphs_then_sentences_then_words():
    text = "One two three.\n\nFour five. Six seven eight nine ten. Eleven\ntwelve.\n\nEnd."
    assert list(cut(text, 5)) == [
        "One two three. Four five.",
        "Six seven eight nine ten.",
        "Eleven twelve. End.",
    ]
    assert list(cut("a b c d e f g", 3)) == ["a b c", "d e f", "g"]
    assert list(cut("Short one.\n\nAnother.", 100)) == ["Short one. Another."]
    assert list(cut(" \n\n \n", 10)) == []


def test_text_without_spaces_is_bounded_too():
    pieces = list(cut("x" * 10_000, 100))
    assert "".join(pieces) == "x" * 10_000
    assert max(map(len, pieces)) <= 100 * CHARACTERS_PER_WORD
    assert next(cut("春。夏。秋。", 1)) == "春。夏。秋。"


@given(st.text(alphabet=st.sampled_from("ab .!?\n\u3002\u4e2d\"'\t"), max_size=400), st.integers(1, 12))
def test_no_character_is_lost_and_every_passage_fits(text: str, most: int):
    pieces = list(cut(text, most))
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() == piece != "" for piece in pieces)
    assert all(len(piece.split()) <= most and len(piece) <= most * CHARACTERS_PER_WORD for piece in pieces)


@pytest.mark.parametrize("unit", ["word ", "A sentence. ", "line\n", "para\n\n", "\u4e2d"])
def test_a_megabyte_takes_a_moment(unit: str):
    text = unit * (1_000_000 // len(unit))
    assert sum(len(piece.split()) for piece in cut(text, 100)) >= len(text.split())
