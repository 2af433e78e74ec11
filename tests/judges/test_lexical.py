import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.judges.lexical import LexicalJudge


@pytest.mark.parametrize(
    ("premise", "hypothesis", "value"),
    [
        ("Rocky won in 1976.", "Rocky won", 1.0),
        ("Rocky won", "Rocky won in 1977", 2 / 3),
        ("Rocky won", "Network lost", 0.0),
        ("Rocky did not win", "Rocky win", 0.5),
        ("Dogs play", "the dog plays", 1.0),
        ("in São Paulo", "sao paulo", 1.0),
        ("x", "the answer is", 0.0),
        ("", "Rocky", 0.0),
        ("Rocky won Best Picture", "Rocky is the answer to 'Who won Best Picture?'", 1.0),
        ("Rocky won Best Picture", "Network is the answer to 'Who won Best Picture?'", 3 / 4),
    ],
)
def test_share_of_the_claims_words(premise: str, hypothesis: str, value: float):
    assert LexicalJudge().entailment([(premise, hypothesis)]) == [pytest.approx(value)]


@given(st.text(), st.text())
def test_always_a_probability(premise: str, hypothesis: str):
    (value,) = LexicalJudge().entailment([(premise, hypothesis)])
    assert value is not None
    assert 0 <= value <= 1
