from sleuth.protocols.demonstration import quote_around
from sleuth.types import Passage


def test_quote_is_the_sentence_with_the_answer():
    passage = Passage("p", "Peru: Capital", "It is old. The name is Lima; founded 1535. It is large.")
    assert quote_around(passage, "Lima", 24) == "Peru: Capital: The name is Lima."


def test_quote_without_the_answer_is_the_first_sentence():
    assert quote_around(Passage("p", "T", "One. Two."), "absent", 24) == "T: One."
    assert quote_around(Passage("p", "T", ""), "x", 24).startswith("T:")


def test_long_sentences_are_cut_to_a_window_that_keeps_the_answer():
    words = [f"w{i}" for i in range(60)]
    words[40] = "Lima"
    quote = quote_around(Passage("p", "T", " ".join(words)), "Lima", 10)
    assert "Lima" in quote
    assert len(quote.split()) == 11
