"""Plots: well-formed SVG in the page's colours, escaped names, shares that add up, nothing drawn without data."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sleuth.evaluation.pages.plots import Dot, Line, bins, dot_chart, histogram, line_chart, wilson

HOSTILE = "</svg><script>$x$ & \" ' #1f6feb \x00"
finite = st.floats(-1e12, 1e12)


def words(figure: str, tag: str) -> list[str]:
    """Texts of the elements with a tag; the figure must be well-formed."""
    return [
        "".join(element.itertext()) for element in ET.fromstring(figure).iter() if element.tag.endswith(tag)
    ]


def heights(figure: str) -> list[list[float]]:
    """Heights of the points of each line in a series colour, from the top."""
    paths = re.findall(r'<path d="([^"]*)"[^>]* style="fill: none; stroke: var\(--series', figure)
    return [[float(y) for y in re.findall(r"[ML] \S+ (\S+)", path)] for path in paths]


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 10_000), finite), max_size=20))
def test_any_points_give_a_well_formed_figure(points: list[tuple[float, float]]) -> None:
    x, y = [float(x) for x, _ in sorted(points)], [y for _, y in sorted(points)]
    low, high = [value - 1 for value in y], [value + 1 for value in y]
    for figure in (
        line_chart("A & <b>", "u", [Line("s<1>", x, y, low, high)]),
        histogram("A & <b>", "u", {"s<1>": y, "none": []}),
        dot_chart("A & <b>", "u", [Dot("s<1>", "t", value, value - 1, value + 1) for value in y[:9]]),
    ):
        assert bool(figure) == bool(points)
        assert not points or words(figure, "figcaption") == ["A & <b>"]
        assert "nan" not in figure


def test_a_line_chart_names_its_axes_and_lines() -> None:
    lines = [Line("total", [1], [0.5]), Line("none"), Line("answer", [1], [0.4])]
    figure = line_chart("Reward", "per episode", lines)
    assert {"step", "per episode"} <= set(words(figure, "text"))
    assert words(figure, "li") == ["total", "answer"]
    assert words(figure, "title") == ["total, 1: 0.5", "answer, 1: 0.4"]
    assert 'aria-label="Reward, per episode, by step; last values: total 0.5, answer 0.4"' in figure
    # The third line has the third colour, although the second is empty.
    assert re.findall(r"background:var\(--series-(\d)\)", figure) == ["1", "3"]
    assert "var(--series-3)" in figure.partition("<ul")[0]


def test_names_stay_text_and_colours_are_the_page_s() -> None:
    figure = line_chart(HOSTILE, "u", [Line(HOSTILE, [1, 2], [1, 2]), Line("b", [1], [1])])
    assert "<script" not in figure
    assert figure.count("$x$") == 2 + 1 + 3  # Legend and title, label read aloud twice, hover titles.
    assert not re.search(r": #[0-9a-f]{6}", figure.replace("#1f6feb", ""))
    assert "font-family" not in figure


def test_figures_of_one_page_share_no_ids() -> None:
    figures = [line_chart(title, "u", [Line("a", [1, 2], [1, 2])]) for title in ("A", "B")]
    first, second = (set(re.findall(r'id="([^"]+)"', figure)) for figure in figures)
    assert first
    assert not first & second
    assert line_chart("A", "u", [Line("a", [1, 2], [1, 2])]) == figures[0]


@pytest.mark.parametrize(
    ("value", "unit", "top"), [(0.0, "%", "100"), (100.0, "%", "100"), (0.0, "per episode", "1.00")]
)
def test_constant_values_have_an_axis_from_zero(value: float, unit: str, top: str) -> None:
    labels = words(line_chart("T", unit, [Line("a", [1, 2], [value, value])]), "text")
    assert top in labels
    assert not [label for label in labels if label.startswith("−")]


def test_long_lines_are_thinned_and_smoothed() -> None:
    x = [float(i) for i in range(20_000)]
    raw, smooth = heights(line_chart("T", "u", [Line("a", x, [i % 7 for i in x])]))
    assert max(len(raw), len(smooth)) <= 400
    assert np.ptp(smooth) < np.ptp(raw) / 2
    _, constant = heights(line_chart("T", "u", [Line("a", x[:100], [3.0] * 100)]))
    assert len(set(constant)) == 1
    assert len(heights(line_chart("T", "u", [Line("a", x, x)], smooth=False))) == 1


def test_a_histogram_has_shares_of_each_system_s_own_episodes() -> None:
    figure = histogram("Turns", "turns", {"a": [1.0, 1.0, 2.0, 4.0], "none": [], "b": [2.0]})
    shares = [
        f"a, {turns} turns: {share} %" for turns, share in ((1, "50.0"), (2, "25.0"), (3, "0.0"), (4, "25.0"))
    ]
    assert words(figure, "title")[:4] == shares
    assert "b, 2 turns: 100.0 %" in words(figure, "title")
    assert words(figure, "li") == ["a (n = 4)", "b (n = 1)"]
    assert "a mean 2; b mean 2" in figure


@example([1e9])
@given(st.lists(st.integers(-9, 9).map(float) | st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_every_value_is_in_one_bin(values: list[float]) -> None:
    edges, names = bins(np.array(values))
    assert len(edges) == len(names) + 1 <= 20
    assert all(b - a > 1e-10 * max(map(abs, values)) for a, b in pairwise(edges))
    assert np.histogram(values, edges)[0].sum() == len(values)


def test_a_dot_chart_explains_every_row() -> None:
    absent = Dot("none", "–", None, None, None)
    dots = [Dot("a", "1.0", 1.0, None, None), absent, Dot("b", "2 [1, 3]", 2.0, 1.0, 3.0)]
    figure = dot_chart("EM", "%", dots)
    assert words(figure, "li") == words(figure, "title") == ["a: 1.0", "b: 2 [1, 3]"]
    assert 'aria-label="EM, %: a: 1.0; b: 2 [1, 3]"' in figure
    assert dot_chart("EM", "%", dots[1:2]) == ""


def test_wilson() -> None:
    """Newcombe 1998, table I."""
    low, high = wilson([81, 15, 0, 1, 5], [263, 148, 20, 29, 5])
    assert low == pytest.approx([0.2553, 0.0624, 0, 0.0061, 0.5655], abs=1e-4)
    assert high == pytest.approx([0.3662, 0.1605, 0.1611, 0.1718, 1], abs=1e-4)
