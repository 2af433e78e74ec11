"""Charts: round ticks that enclose the data, well-formed SVG, nothing drawn from nothing."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.evaluation.pages.charts import HEIGHT, WIDTH, Series, line_chart, series_of, short, ticks


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


@settings(deadline=None)
@given(finite, finite, st.booleans())
def test_ticks_enclose_and_rise(a: float, b: float, whole: bool) -> None:
    low, high = min(a, b), max(a, b)
    found = ticks(low, high, 5, whole=whole)
    assert 2 <= len(found) <= 9
    assert all(x < y for x, y in pairwise(found))
    slack = 1e-6 * (found[-1] - found[0])
    assert found[0] <= low + slack
    assert found[-1] >= high - slack


@settings(deadline=None)
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


@pytest.mark.parametrize("value", [0.0, 100.0])
def test_shares_that_are_all_alike_end_at_100(value: float) -> None:
    tree = ET.fromstring(line_chart("T", "wrong answers, %", [Series("a", [(1, value), (2, value)])]))
    numbers = {element.text for element in tree.iter("text")}
    assert {"0", "100"} <= numbers
    assert "150" not in numbers


def test_a_count_that_never_changes_has_no_negative_axis() -> None:
    tree = ET.fromstring(line_chart("Searches", "per episode", [Series("a", [(1, 0.0), (2, 0.0)])]))
    assert "-1" not in {element.text for element in tree.iter("text")}


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
    assert [short(v) for v in (0.0, 0.25, 5000.0, 12345.678, -2.5e6, 7e9, 1e12, 0.00012, -3e-7)] == [
        "0",
        "0.25",
        "5000",
        "12.35k",
        "-2.5M",
        "7G",
        "1e+12",
        "1.2e-4",
        "-3.0e-7",
    ]


def test_bands_colours_and_a_legend_for_whatever_was_asked_for() -> None:
    series = [
        Series("a", [(0, 1.0), (10, 2.0)], [(0, 0.5, 1.5), (10, 1.0, 9.0)], colour=3),
        Series("none", []),
    ]
    tree = ET.fromstring(line_chart("T", "u", series, smooth=False))
    (band,) = tree.iter("polygon")
    assert band.attrib["class"] == "band s3"
    ys = [float(pair.split(",")[1]) for pair in band.attrib["points"].split()]
    assert all(0 <= y <= HEIGHT for y in ys)
    assert len(ys) == 4
    # Two were asked for, so the one that is drawn is named.
    assert ["".join(item.itertext()) for item in tree.iter("li")] == ["a"]


def test_long_lines_are_thinned_and_keep_their_ends() -> None:
    points = [(float(i), float(i % 7)) for i in range(20_000)]
    tree = ET.fromstring(line_chart("T", "u", [Series("a", points)]))
    raw, smooth = (line.attrib["points"].split() for line in tree.iter("polyline"))
    assert len(raw) <= 402
    assert len(smooth) <= 402
    plain = ET.fromstring(line_chart("T", "u", [Series("a", points[:1000])], smooth=False))
    (line,) = plain.iter("polyline")
    assert line.attrib["class"] == "line s1"


def test_the_running_mean_of_a_constant_is_the_constant() -> None:
    tree = ET.fromstring(line_chart("T", "u", [Series("a", [(float(i), 3.0) for i in range(100)])]))
    _, smooth = tree.iter("polyline")
    assert len({pair.split(",")[1] for pair in smooth.attrib["points"].split()}) == 1
