"""Line charts as inline SVG text: axes with units, bands, a legend, no script and no network.

Colours are the CSS variables --series-1 … --series-8 of the page, so that light and dark both work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple

WIDTH, HEIGHT = 400, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 12, 38
COLOURS = 8
_FEW_POINTS = 60
"""Up to this many points each is drawn with its value to read on hover; more would hide the line."""
_SMOOTH = 40
"""From this many points on a running mean is drawn over the raw line."""
_MOST = 400
"""Points of a line that are drawn; more would weigh and show nothing."""


class Series(NamedTuple):
    """One line: (step, value) in order of step."""

    label: str
    points: list[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    """(step, low, high) around the line; empty for none."""
    colour: int = 0
    """1 … COLOURS; 0 = by its place on the chart."""


def line_chart(
    title: str, unit: str, series: Sequence[Series], x_label: str = "step", *, smooth: bool = True
) -> str:
    """A <figure> with one chart; "" without points. `unit` labels the y axis."""
    drawn = [
        s._replace(colour=s.colour or i % COLOURS + 1) for i, s in enumerate(s for s in series if s.points)
    ]
    if not drawn:
        return ""
    xs = [x for s in drawn for x, _ in s.points]
    ys = [y for s in drawn for _, y in s.points] + [end for s in drawn for _, *ends in s.band for end in ends]
    x_ticks, y_ticks = ticks(min(xs), max(xs), 5, whole=True), _value_ticks(ys, unit)
    scale = Scale(x_ticks[0], x_ticks[-1], y_ticks[0], y_ticks[-1])
    parts = [axes(scale, x_ticks, y_ticks, x_label, unit), *(_band(scale, one) for one in drawn)]
    parts += [_line(scale, one, smooth=smooth) for one in drawn]
    last = ", ".join(f"{s.label} {short(s.points[-1][1])}" for s in drawn)
    # One line of several that were asked for has to be named as well.
    keys = [(s.label, s.colour) for s in drawn] if len(series) > 1 else []
    return framed(title, f"{title}, {unit}, by {x_label}; last values: {last}", "".join(parts), keys)


def _value_ticks(values: Sequence[float], unit: str) -> list[float]:
    """Ticks of the y axis; values that are all alike stand on an axis from 0, that of shares ends at 100 %."""
    low, high = min(values), max(values)
    if low == high and low >= 0:
        return ticks(0, 100.0 if "%" in unit and high <= 100 else 2 * high or 1.0, 4)
    return ticks(low, high, 4)


def framed(
    title: str, described: str, drawing: str, keys: Sequence[tuple[str, int]], height: int = HEIGHT
) -> str:
    """A <figure> around SVG elements; `keys` are the legend's (label, colour), `described` is read aloud."""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(described, quote=True)}">'
        f"{drawing}</svg>{legend(keys)}</figure>"
    )


class Scale(NamedTuple):
    """From values to the drawing's units, inside the axes of a chart of the usual size."""

    x0: float
    x1: float
    y0: float
    y1: float

    def x(self, value: float) -> float:
        """From the left."""
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """From the top."""
        return HEIGHT - BOTTOM - (value - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """About `count` round values that enclose [low, high], at least two."""
    if high - low < 1e-12 * max(1.0, abs(low), abs(high)):
        pad = 1.0 if whole else abs(low) * 0.5 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    if whole:
        step = max(1.0, math.ceil(step))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, max(last, first + 1) + 1)]


def short(value: float) -> str:
    """A number in a few characters."""
    if value and abs(value) < 0.001:
        return f"{value:.1e}".replace("e-0", "e-")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e12:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def axes(scale: Scale, x_ticks: Sequence[float], y_ticks: Sequence[float], x_label: str, unit: str) -> str:
    """Grid, ticks and the names of both axes; `unit` stands upright on the left."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in y_ticks:
        y = scale.y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for value in x_ticks:
        x = scale.x(value)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{short(value)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text class="name" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>'
    )
    y_middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="name" x="11" y="{y_middle}" text-anchor="middle" '
        f'transform="rotate(-90 11 {y_middle})">{escape(unit)}</text>'
    )
    return "".join(parts)


def _line(scale: Scale, series: Series, *, smooth: bool) -> str:
    points, colour = series.points, series.colour
    is_long = smooth and len(points) >= _SMOOTH
    classes = f"line s{colour}"
    drawn = _path(scale, _thinned(points), f"{classes} raw" if is_long else classes)
    if is_long:
        return drawn + _path(scale, _thinned(_running_mean(points)), classes)
    if len(points) <= _FEW_POINTS:
        drawn += "".join(
            f'<circle class="dot s{colour}" cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="2.5">'
            f"<title>{escape(series.label)}, {short(x)}: {short(y)}</title></circle>"
            for x, y in points
        )
    return drawn


def _band(scale: Scale, series: Series) -> str:
    """The area between low and high."""
    if not series.band:
        return ""
    edge = [(x, high) for x, _, high in series.band] + [(x, low) for x, low, _ in reversed(series.band)]
    coordinates = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in edge)
    return f'<polygon class="band s{series.colour}" points="{coordinates}"/>'


def _path(scale: Scale, points: Sequence[tuple[float, float]], classes: str) -> str:
    coordinates = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in points)
    return f'<polyline class="{classes}" points="{coordinates}"/>'


def _thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """At most about _MOST points, the last among them."""
    every = math.ceil(len(points) / _MOST)
    return points if every < 2 else [*points[:-1:every], points[-1]]


def _running_mean(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Centred mean over about a tenth of the points, cut off at the ends."""
    half = max(1, len(points) // 20)
    sums = [0.0, *accumulate(y for _, y in points)]
    smoothed = []
    for i, (x, _) in enumerate(points):
        start, stop = max(0, i - half), min(len(points), i + half + 1)
        smoothed.append((x, (sums[stop] - sums[start]) / (stop - start)))
    return smoothed


def legend(keys: Sequence[tuple[str, int]]) -> str:
    """A list of (label, colour); "" for none."""
    items = "".join(f'<li><span class="key s{colour}"></span>{escape(label)}</li>' for label, colour in keys)
    return f'<ul class="legend">{items}</ul>' if keys else ""


def series_of(rows: Sequence[Mapping[str, object]], key: str, label: str, factor: float = 1.0) -> Series:
    """The finite numbers under `key` by "step"; rows without either are passed over."""
    points = []
    for row in rows:
        x, y = row.get("step"), row.get(key)
        if _is_number(x) and _is_number(y):
            points.append((float(x), factor * float(y)))  # type: ignore[arg-type]
    return Series(label, sorted(points))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
