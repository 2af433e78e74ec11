"""Charts: round ticks that enclose the data, well-formed SVG, nothing drawn from nothing."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.evaluation.charts import HEIGHT, WIDTH, Series, line_chart, series_of, short, ticks


@pytest.mark.parametrize(
    ("low", "high", "count", "whole", "expected"),
    [
        (0, 1, 4, False, [0, 0.25, 0.5, 0.75, 1]),
        (0, 120, 5, True, [0, 25, 50, 75, 100, 125]),
        (1, 3, 5, True, [1, 2, 3]),
        (7, 7, 5, True, [6, 7, 8]),
        (0, 0, 4, False, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks(low: float, high: float, count: int, whole: bool, expected: list[float]) -> None:
    assert ticks(low, high, count, whole=whole) == pytest.approx(expected)


finite = st.floats(-1e12, 1e12)


@given(finite, finite, st.booleans())
def test_ticks_enclose_and_rise(a: float, b: float, whole: bool) -> None:
    low, high = min(a, b), max(a, b)
    found = ticks(low, high, 5, whole=whole)
    assert 2 <= len(found) <= 9
    assert all(x < y for x, y in pairwise(found))
    slack = 1e-6 * (found[-1] - found[0])
    assert found[0] <= low + slack
    assert found[-1] >= high - slack


@given(st.lists(st.tuples(st.integers(0, 10_000), finite), max_size=80))
def test_a_chart_is_well_formed_and_stays_inside(points: list[tuple[float, float]]) -> None:
    html = line_chart("A & <b>", 'u "x"', [Series("s<1>", sorted(points))])
    if not points:
        assert html == ""
        return
    tree = ET.fromstring(html)
    for line in tree.iter("polyline"):
        for pair in line.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    assert "nan" not in html


def test_axes_carry_their_units_and_lines_their_names() -> None:
    tree = ET.fromstring(
        line_chart("Reward", "per episode", [Series("total", [(1, 0.5)]), Series("answer", [(1, 0.4)])])
    )
    words = {element.text for element in tree.iter()}
    assert {"Reward", "step", "per episode", "total, 1: 0.5"} <= words
    assert [item.findtext("span") is not None for item in tree.iter("li")] == [True, True]
    assert len(list(tree.iter("circle"))) == 2


def test_only_finite_numbers_become_points() -> None:
    rows = [
        {"step": 2, "x": 0.5},
        {"step": 1, "x": 1},
        {"step": 3, "x": None},
        {"step": 4, "x": math.nan},
        {"step": 5, "x": True},
        {"step": None, "x": 1.0},
        {"x": 1.0},
        {"step": 6, "x": "7"},
    ]
    assert series_of(rows, "x", "x", 100.0) == Series("x", [(1.0, 100.0), (2.0, 50.0)])


def test_short_numbers() -> None:
    assert [short(v) for v in (0.0, 0.25, 12345.678, 0.00012, -3e-7)] == [
        "0",
        "0.25",
        "1.235e+04",
        "1.2e-4",
        "-3.0e-7",
    ]
