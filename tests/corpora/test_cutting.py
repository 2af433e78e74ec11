"""Cutting: bounded pieces, nothing lost, borders where a reader would put them."""

from hypothesis import given
from hypothesis import strategies as st

from sleuth.corpora.cutting import CHARACTERS_PER_WORD, cut


def test_cuts_between_paragraphs_then_sentences_then_words():
    text = "One two. Three four.\n\nFive six seven. Eight nine ten.\n\na b c d e f g"
    assert list(cut(text, 4)) == [
        "One two. Three four.",
        "Five six seven.",
        "Eight nine ten.",
        "a b c d",
        "e f g",
    ]


def test_short_paragraphs_share_a_passage_and_line_ends_are_spaces():
    assert list(cut("one\ntwo\n\n\nthree", 3)) == ["one two three"]


def test_nothing_in_nothing_out():
    assert list(cut(" \n\n ", 3)) == []


@given(st.text("ab .。\n", max_size=300), st.integers(1, 12))
def test_bounded_and_no_character_lost(text: str, most: int):
    pieces = list(cut(text, most))
    assert "".join("".join(pieces).split()) == "".join(text.split())
    for piece in pieces:
        assert piece == " ".join(piece.split())
        assert piece
        assert len(piece.split()) <= most
        assert len(piece) <= most * CHARACTERS_PER_WORD
