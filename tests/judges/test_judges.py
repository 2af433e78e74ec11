"""Judges by name, the lexical judge, and the accuracy of any judge on labelled pairs."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import ConfigError, DataError
from sleuth.judges import open_judge
from sleuth.judges.labelled import LabelledPair, measure, read_pairs
from sleuth.judges.lexical import LexicalJudge
from sleuth.judges.llm import LLMJudge
from sleuth.judges.nli import NLIJudge, SmallJudge


def test_open_judge():
    assert open_judge("lexical") == LexicalJudge()
    assert open_judge("small") == SmallJudge()
    assert open_judge("openai:http://localhost:1/v1#m") == LLMJudge("openai:http://localhost:1/v1#m")
    assert open_judge("some/classifier") == NLIJudge("some/classifier")
    with pytest.raises(ConfigError, match="empty"):
        open_judge(" ")


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


def test_accuracy_by_hand():
    pairs = [
        LabelledPair("a b", "a b", True),
        LabelledPair("a", "a", False),
        LabelledPair("a", "b", False),
        LabelledPair("a", "c", True),
    ]
    found = measure(LexicalJudge(), pairs)
    # "a" is not a content word: b of "a b" counts; scores 1, 0, 0, 0 against entailed, no, no, entailed
    assert (found.n, found.invalid, found.accuracy, found.balanced) == (4, 0, 0.75, 0.75)
    assert found.auc == 0.75  # 1 beats both; 0 ties with both
    alone = measure(LexicalJudge(), pairs[:1])
    assert (alone.accuracy, math.isnan(alone.balanced), math.isnan(alone.auc)) == (1.0, True, True)


def test_labels_of_both_data_sets(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    labels = ["entailment", "attributable", "neutral", "contradiction", "not attributable"]
    path.write_text("".join(f'{{"premise": "a", "hypothesis": "b", "label": "{x}"}}\n' for x in labels))
    assert [pair.entailed for pair in read_pairs(path)] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"premise": "a", "hypothesis": "b", "label": "maybe"}', "1: label"),
        ('{"premise": "a", "label": "neutral"}', "1: hypothesis"),
        ("[]", "1: row"),
        ("", " no labelled pairs"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, field: str):
    path = tmp_path / "p.jsonl"
    path.write_text(line)
    with pytest.raises(DataError, match=rf"p\.jsonl:{field}"):
        read_pairs(path)
