"""Answer spans agree with the containment rule and point at the right characters."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.evaluation.pages.episodes import answer_spans
from sleuth.text import contains


@pytest.mark.parametrize(
    ("text", "golds", "marked"),
    [
        ("Population: 68,374,591 (2024 est.).", ["68,374,591"], ["68,374,591"]),
        ("Population: 68,374,591.", ["68374591"], ["68,374,591"]),
        ("the Eiffel Tower, an Eiffel tower", ["The Eiffel Tower"], ["Eiffel Tower", "Eiffel tower"]),
        ("New York City", ["New York", "York City"], ["New York City"]),
        ("“Paris” is (Paris)", ["paris"], ["Paris"]),
        ("know no 19", ["no", "9"], []),
        ("", ["x"], []),
        ("x", [], []),
        ("x", ["", "the"], []),
    ],
)
def test_spans(text: str, golds: list[str], marked: list[str]) -> None:
    assert [text[start:end] for start, end in answer_spans(text, golds)] == marked


pieces = st.text("abTheé. ,-'–“\u0301\n\u00a0ΣσA1", max_size=20)


@given(pieces, pieces)
def test_there_is_a_span_exactly_where_the_answer_is_contained(text: str, gold: str) -> None:
    spans = answer_spans(text, [gold])
    assert bool(spans) == contains(text, gold)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
