import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.protocols.prompted.reasoning import first_sentence, short_answer, stated_answer, states_answer


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Ann wrote it. She lived in Rome.", "Ann wrote it."),
        ("\n\n  One line\nAnother", "One line"),
        ("J. R. R. Tolkien wrote it. Then more.", "J. R. R. Tolkien wrote it."),
        ("He is from St. Louis. It is hot.", "He is from St. Louis."),
        ("It is 3.5 km long! Really.", "It is 3.5 km long!"),
        ("no end", "no end"),
        ("", ""),
        (" \n \t", ""),
    ],
)
def test_first_sentence(text: str, sentence: str):
    assert first_sentence(text) == sentence


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So the answer is: Paris.", "Paris"),
        ("so the ANSWER IS Paris", "Paris"),
        ("The answer is not known yet. So the answer is: Rome.", "Rome"),
        ("So the answer is: **Rome**.", "Rome"),
        ('The final answer is: "Rome"', "Rome"),
        ("**So the answer is:** Rome", "Rome"),
        ("So the answer is:\nRome\nBecause.", "Rome"),
        ("So the answer is: Rome. It is old.", "Rome"),
        ("So the answer is: the U.S.", "the U.S."),
        ("So the answer is: no.", "no"),
        ("So the answer is:", ""),
        ("So the answer is: .", ""),
        ("Paris", ""),
        ("answer island: x", ""),
        ("", ""),
    ],
)
def test_stated_answer(text: str, answer: str):
    assert stated_answer(text) == answer


def test_states_answer():
    assert states_answer("the answer is x")
    assert not states_answer("the answers are x")


@given(st.text())
def test_nothing_breaks_and_an_answer_is_one_line(text: str):
    for found in (first_sentence(text), stated_answer(text), short_answer(text)):
        assert len(found.splitlines()) <= 1
        assert found == found.strip()
