"""Figures as text."""

import pytest

from sleuth.evaluation.figures import interval, number, p_value
from sleuth.evaluation.statistics import Difference, Estimate


@pytest.mark.parametrize(
    ("value", "name", "signed", "text"),
    [
        (0.3125, "em", False, "31.2"),
        (1.0, "valid_format", False, "100.0"),
        (2.0, "searches", False, "2.00"),
        (87.25, "response_tokens", False, "87.2"),
        (512.4, "response_tokens", False, "512"),
        (None, "em", False, "–"),
        (0.05, "em", True, "+5.0"),
        (-0.05, "em", True, "−5.0"),
        (-0.0001, "em", True, "0.0"),
        (0.0, "em", True, "0.0"),
        (0.5, "reward/answer", False, "0.50"),
    ],
)
def test_number(value: float | None, name: str, signed: bool, text: str) -> None:
    assert number(value, name, signed=signed) == text


def test_interval() -> None:
    assert interval(Estimate(0.3, 0.2, 0.41, 10), "em") == "[20.0, 41.0]"
    assert interval(Difference(0.3, -0.2, 0.41, 10), "em") == "[−20.0, +41.0]"
    assert interval(Estimate(0.3, None, None, 1), "em") == ""
    assert interval(Estimate(5.0, 2.5, None, 2), "total_compression_ratio") == "[2.50, no bound]"


def test_p_value() -> None:
    assert [p_value(p) for p in (None, 0.0001, 0.0156, 1.0)] == ["–", "< 0.001", "0.016", "1.000"]
