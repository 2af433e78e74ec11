"""Holm's correction against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from sleuth.errors import DataError
from sleuth.evaluation.statistics import holm


def test_adjusts_by_the_number_of_tests_still_open_and_keeps_the_order_given() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_test_that_was_not_made_is_not_counted() -> None:
    assert holm([None, 0.02, 0.5]) == [None, 0.04, 0.5]
    assert holm([]) == []
    assert holm([None]) == [None]


def test_never_exceeds_one() -> None:
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_refuses_what_is_no_probability(bad: float) -> None:
    with pytest.raises(DataError, match="p-value 1"):
        holm([0.5, bad])
