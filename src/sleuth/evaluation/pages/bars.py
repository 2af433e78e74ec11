"""Dots with intervals, and histograms, as inline SVG text; axes, units and n as in sleuth.evaluation.pages.charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from sleuth.evaluation.pages.charts import (
    COLOURS,
    LEFT,
    TOP,
    WIDTH,
    Scale,
    axes,
    framed,
    short,
    ticks,
)

_ROW = 34
_MARGIN = 14
"""Left and right of the dots, for the numbers at the ends of the axis."""
_NAME = 40
"""Characters of a name that are written out; its end tells more than its beginning."""
_LINE = 56
"""Characters that have room above a dot's line, name and text together."""
_WHOLE = 12
"""Up to this many different whole numbers each has its own bar."""
_BINS = 8
_WHISKERS = 48
"""Most bars that carry an interval; on more of them nothing could be read."""
Z = 1.959963984540054
"""The normal distribution's 97.5 % point."""


class Dot(NamedTuple):
    """One value with its interval."""

    label: str
    value: float
    low: float | None
    high: float | None
    text: str
    """Value and interval in words."""
    colour: int
    """1 … COLOURS; the same for one system on every chart."""


def dot_chart(title: str, unit: str, dots: Sequence[Dot]) -> str:
    """A <figure> with one line for each dot; "" for none. `unit` names the axis."""
    if not dots:
        return ""
    ends = [end for dot in dots for end in (dot.low, dot.high, dot.value) if end is not None]
    marks = ticks(min(ends), max(ends), 5)
    height = TOP + _ROW * len(dots) + 34
    bottom = height - 34

    def x(value: float) -> float:
        return _MARGIN + (value - marks[0]) / (marks[-1] - marks[0]) * (WIDTH - 2 * _MARGIN)

    parts = []
    for mark in marks:
        parts.append(f'<line class="grid" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x(mark):.1f}" y="{bottom + 14}" text-anchor="middle">{short(mark)}</text>')
    parts.append(
        f'<text class="name" x="{WIDTH / 2}" y="{height - 4}" text-anchor="middle">{escape(unit)}</text>'
    )
    for index, dot in enumerate(dots):
        y, colour = TOP + _ROW * index + 24, dot.colour
        low, high = (dot.value if end is None else end for end in (dot.low, dot.high))
        parts.append(
            f'<text class="name" x="{_MARGIN}" y="{y - 10}">{escape(tail(dot.label, _LINE - len(dot.text)))}</text>'
            f'<text class="name" x="{WIDTH - _MARGIN}" y="{y - 10}" text-anchor="end">{escape(dot.text)}</text>'
            f'<line class="line s{colour}" x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot s{colour}" cx="{x(dot.value):.1f}" cy="{y}" r="4">'
            f"<title>{escape(dot.label)}: {escape(dot.text)}</title></circle>"
        )
    described = "; ".join(f"{dot.label} {dot.text}" for dot in dots)
    return framed(title, f"{title}, {unit}: {described}", "".join(parts), [], height)


def tail(name: str, most: int = _NAME) -> str:
    """The end of a name that has no room for more."""
    most = max(most, 8)
    return name if len(name) <= most else f"…{name[1 - most :]}"


class Sample(NamedTuple):
    """The values of one system."""

    label: str
    values: Sequence[float]


def histogram(title: str, unit: str, samples: Sequence[Sample]) -> str:
    """A <figure> with the share of episodes in each bin, systems beside one another, with 95 % Wilson intervals.

    "" without values. Few different whole numbers have a bar each; others share bins of equal width.
    """
    colours = {id(sample): i % COLOURS + 1 for i, sample in enumerate(samples)}
    drawn = [sample for sample in samples if len(sample.values)]
    if not drawn:
        return ""
    edges, names = bins([value for sample in drawn for value in sample.values])
    shares = [_shares(sample.values, edges) for sample in drawn]
    has_whiskers = len(drawn) * len(names) <= _WHISKERS
    tops = [high if has_whiskers else share for row in shares for share, _, high in row]
    y_ticks = ticks(0.0, max(tops), 4)
    scale = Scale(0.0, float(len(names)), y_ticks[0], y_ticks[-1])
    parts = [axes(scale, [], y_ticks, unit, "% of episodes")]
    bottom, width = scale.y(0.0), 0.8 / len(drawn)
    for place, name in enumerate(names):
        parts.append(
            f'<text x="{scale.x(place + 0.5):.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{escape(name)}</text>'
        )
    for index, (sample, row) in enumerate(zip(drawn, shares, strict=True)):
        for place, found in enumerate(row):
            left = scale.x(place + 0.1 + width * index)
            what = f"{sample.label}, {names[place]} {unit}: {found[0]:.1f} %"
            parts.append(
                _bar(
                    scale, left, scale.x(width) - LEFT, found, colours[id(sample)], what, whisker=has_whiskers
                )
            )
    keys = [(f"{sample.label} (n = {len(sample.values)})", colours[id(sample)]) for sample in drawn]
    return framed(title, f"{title}: share of episodes by {unit}", "".join(parts), keys)


def _bar(
    scale: Scale,
    left: float,
    width: float,
    found: tuple[float, float, float],
    colour: int,
    what: str,
    *,
    whisker: bool,
) -> str:
    share, low, high = found
    top, bottom, middle = scale.y(share), scale.y(0.0), left + width / 2
    drawn = (
        f'<rect class="bar s{colour}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{bottom - top:.1f}"><title>{escape(what)}</title></rect>'
    )
    if whisker:
        drawn += (
            f'<line class="axis" x1="{middle:.1f}" x2="{middle:.1f}" '
            f'y1="{scale.y(low):.1f}" y2="{scale.y(high):.1f}"/>'
        )
    return drawn


def bins(values: Sequence[float]) -> tuple[list[float], list[str]]:
    """Edges, one more than bins, and the bins' names. A value on an edge belongs to the bin that begins there."""
    low, high = min(values), max(values)
    if all(value == int(value) for value in values) and high - low < _WHOLE:
        first, last = int(low), int(high)
        return [float(n) for n in range(first, last + 2)], [str(n) for n in range(first, last + 1)]
    edges = ticks(low, high, _BINS, whole=high - low >= _BINS)
    if high >= edges[-1]:
        edges.append(2 * edges[-1] - edges[-2])
    return edges, [f"{short(edge)}–" for edge in edges[:-1]]


def _shares(values: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float, float]]:
    """For each bin its share in %, and the ends of the share's interval."""
    found, n = [], len(values)
    for start, stop in pairwise(edges):
        count = sum(start <= value < stop for value in values)
        low, high = wilson(count, n)
        found.append((100 * count / n, 100 * low, 100 * high))
    return found


def wilson(successes: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share, inside [0, 1]; n at least 1. Source: Wilson 1927."""
    share = successes / n
    scale = 1 / (1 + Z**2 / n)
    middle = scale * (share + Z**2 / (2 * n))
    half = scale * Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)
