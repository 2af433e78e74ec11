"""Dots and histograms: well-formed SVG, inside its frame, shares that add up, nothing drawn from nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.evaluation.pages.bars import Dot, Sample, bins, dot_chart, histogram, tail, wilson
from sleuth.evaluation.pages.charts import HEIGHT, WIDTH

finite = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("values", "edges", "names"),
    [
        ([0.0, 3.0], [0, 1, 2, 3, 4], ["0", "1", "2", "3"]),
        ([4.0], [4, 5], ["4"]),
        ([0.0, 100.0], [0, 20, 40, 60, 80, 100, 120], ["0–", "20–", "40–", "60–", "80–", "100–"]),
    ],
)
def test_bins(values: list[float], edges: list[float], names: list[str]) -> None:
    assert bins(values) == (edges, names)


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=40))
def test_every_value_has_one_bin(values: list[float]) -> None:
    edges, names = bins(values)
    assert len(edges) == len(names) + 1 <= 20
    assert all(a < b for a, b in pairwise(edges))
    inside = [sum(a <= value < b for a, b in pairwise(edges)) for value in values]
    slack = 1e-6 * (edges[-1] - edges[0])
    assert all(one == 1 or abs(value - edges[0]) <= slack for one, value in zip(inside, values, strict=True))


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1e6), max_size=20), max_size=12))
def test_a_histogram_is_well_formed_and_stays_inside(samples: list[list[float]]) -> None:
    html = histogram("T <b>", 'u "x"', [Sample(f"s&{i}", values) for i, values in enumerate(samples)])
    if not any(samples):
        assert html == ""
        return
    tree = ET.fromstring(html)
    for bar in tree.iter("rect"):
        x, y, width, height = (float(bar.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH + 0.2
        assert 0 <= y <= y + height <= HEIGHT
    assert "nan" not in html
    assert len(list(tree.iter("li"))) == sum(bool(values) for values in samples)


def test_shares_are_percent_of_each_systems_own_episodes() -> None:
    html = histogram("Turns", "turns", [Sample("a", [1.0, 1.0, 2.0, 4.0]), Sample("b", [2.0])])
    titles = [title.text or "" for title in ET.fromstring(html).iter("title")]
    assert titles[:4] == [
        "a, 1 turns: 50.0 %",
        "a, 2 turns: 25.0 %",
        "a, 3 turns: 0.0 %",
        "a, 4 turns: 25.0 %",
    ]
    assert "b, 2 turns: 100.0 %" in titles
    assert "a (n = 4)" in html


def test_a_system_keeps_its_colour_where_another_has_nothing() -> None:
    html = histogram("T", "u", [Sample("none", []), Sample("b", [1.0])])
    assert re.findall(r'class="bar (s\d)"', html) == ["s2"]


def test_whiskers_only_where_they_can_be_read() -> None:
    few = histogram("T", "u", [Sample("a", [1.0, 2.0])])
    many = histogram("T", "u", [Sample(str(i), [float(n) for n in range(12)]) for i in range(5)])
    assert few.count('class="axis"') == 1 + 2
    assert many.count('class="axis"') == 1


def test_wilson() -> None:
    # Newcombe 1998, table I: 81 of 263 and 15 of 148.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)
    assert wilson(5, 5)[1] == 1.0


@settings(deadline=None)
@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_encloses_the_share(n: int, share: float) -> None:
    low, high = wilson(share * n, n)
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


@settings(deadline=None)
@given(st.lists(st.tuples(finite, finite, finite), max_size=9))
def test_dots_are_well_formed_and_inside(triples: list[tuple[float, float, float]]) -> None:
    dots = [
        Dot(f"run <{i}>", value, low, high, "t", i % 8 + 1)
        for i, (low, value, high) in enumerate(map(sorted, triples))
    ]
    html = dot_chart("T", "u", dots)
    if not dots:
        assert html == ""
        return
    tree = ET.fromstring(html)
    (svg,) = tree.iter("svg")
    height = float(svg.attrib["viewBox"].split()[3])
    for dot in tree.iter("circle"):
        assert 0 <= float(dot.attrib["cx"]) <= WIDTH
        assert 0 <= float(dot.attrib["cy"]) <= height


def test_a_dot_without_interval_is_a_dot() -> None:
    tree = ET.fromstring(dot_chart("T", "u", [Dot("a", 1.0, None, None, "1.0", 3)]))
    (line,) = (line for line in tree.iter("line") if line.attrib["class"] == "line s3")
    assert line.attrib["x1"] == line.attrib["x2"]


def test_names_make_room_for_the_numbers() -> None:
    name = "a/very/long/path/of/a/run/that/never/ends/eval-final"
    html = dot_chart("T", "u", [Dot(name, 1.0, None, None, "x" * 40, 1)])
    words = [text.text or "" for text in ET.fromstring(html).iter("text")]
    assert "…val-final"[-9:] in "".join(words)
    assert name not in words
    assert f"<title>{name}: " in html
    assert tail("short") == "short"
    assert len(tail(name)) == 40
