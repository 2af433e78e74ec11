"""Plots as HTML figures: matplotlib draws inline SVG in the page's CSS colours, so that light and dark both work.

Only numbers and units are drawn. Names are escaped HTML around the drawing, or hover titles inside it.
"""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Values = Sequence[float] | Floats

_STYLE = Path(__file__).with_name("plots.mplstyle")
_SERIES = ("1f6feb", "d9480f", "2b8a3e", "862e9c", "5c7080", "0b7285", "c2255c", "846100")
_VARIABLES = {colour: f"var(--series-{i})" for i, colour in enumerate(_SERIES, 1)}
_VARIABLES |= {"59636e": "var(--soft)", "d9dee4": "var(--rule)"}
"""Colour in plots.mplstyle → the page's own, which follows light and dark."""
_WIDTH, _HEIGHT = 4.0, 2.4  # Inches; the page scales a drawing to its column.
_STEPS = (1, 2, 2.5, 5, 10)  # Distances of ticks, times a power of ten.
_HOVERED, _SMOOTHED, _DRAWN = 60, 40, 400
"""Most points with a marker and a hover title; fewest with a running mean; most that are drawn."""
_BINS, _WHOLE = 8, 12  # Bins of a histogram; most whole numbers in a row with a bar each.
_Z = 1.959963984540054  # 97.5 % point of the normal distribution.


class Line(NamedTuple):
    """One curve; an empty one keeps its place's colour free."""

    label: str
    x: Values = ()
    y: Values = ()
    low: Values = ()  # Lower end of the interval at each x, NaN for none; empty for no band.
    high: Values = ()


class Dot(NamedTuple):
    """One value with its interval."""

    label: str
    text: str  # Value and interval in words.
    value: float | None  # None draws nothing and keeps the place's colour free.
    low: float | None
    high: float | None


@rc_context(fname=_STYLE)
def line_chart(
    title: str, unit: str, lines: Sequence[Line], x_label: str = "step", *, smooth: bool = True
) -> Markup:
    """Line chart with bands; `unit` labels the y axis; empty without points."""
    drawn = [(line, f"C{i % len(_SERIES)}") for i, line in enumerate(lines) if len(line.x)]
    if not drawn:
        return Markup()
    plot = _Plot(x_label, unit)
    for line, colour in drawn:
        n = len(line.x)
        shown = np.linspace(0, n - 1, min(n, _DRAWN)).astype(int)
        x, y, low, high = (np.asarray(values, float)[shown] if len(values) else () for values in line[1:])
        if len(low):
            plot.axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
        if smooth and n >= _SMOOTHED:
            plot.axes.plot(x, y, color=colour, alpha=0.3, linewidth=0.8)
            # Centred mean over about a tenth of the values; windows are cut off at the ends.
            window = np.ones(max(3, n // 10))
            y = (np.convolve(line.y, window, "same") / np.convolve(np.ones(n), window, "same"))[shown]
        elif n <= _HOVERED:
            for step, value in zip(x, y, strict=True):
                plot.point(step, value, colour, f"{line.label}, {step:.4g}: {value:.4g}")
        plot.axes.plot(x, y, color=colour)
    values = np.concatenate([[*line.y, *line.low, *line.high] for line, _ in drawn])
    if values.min() == values.max() >= 0:
        plot.axes.set_ylim(0, 100 if "%" in unit else 2 * values.max() or 1)
    last = ", ".join(f"{line.label} {line.y[-1]:.4g}" for line, _ in drawn)
    keys = [(line.label, colour) for line, colour in drawn] if len(lines) > 1 else []
    return plot.html(title, f"{title}, {unit}, by {x_label}; last values: {last}", keys)


@rc_context({"axes.grid.axis": "x"}, _STYLE)
def dot_chart(title: str, unit: str, dots: Sequence[Dot]) -> Markup:
    """One row for each dot and interval, explained in the legend; `unit` labels the x axis; empty without values."""
    drawn = [(dot, dot.value, f"C{i % len(_SERIES)}") for i, dot in enumerate(dots) if dot.value is not None]
    if not drawn:
        return Markup()
    plot = _Plot(unit, "", 0.6 + 0.2 * len(drawn))
    keys = [(f"{dot.label}: {dot.text}", colour) for dot, _, colour in drawn]
    for row, (dot, value, colour) in enumerate(drawn):
        ends = [value if end is None else end for end in (dot.low, dot.high)]
        plot.axes.plot(ends, [row, row], color=colour, clip_on=False)
        plot.point(value, row, colour, keys[row][0])
    plot.axes.set_yticks([])
    plot.axes.set_ylim(len(drawn) - 0.5, -0.5)
    return plot.html(title, f"{title}, {unit}: {'; '.join(name for name, _ in keys)}", keys)


@rc_context(fname=_STYLE)
def histogram(title: str, unit: str, samples: Mapping[str, Values]) -> Markup:
    """Share of each system's episodes by bin, with 95 % Wilson intervals; empty without values."""
    drawn = [(name, v, f"C{i % len(_SERIES)}") for i, (name, v) in enumerate(samples.items()) if len(v)]
    if not drawn:
        return Markup()
    edges, names = bins(np.concatenate([values for _, values, _ in drawn]))
    width = 0.8 * np.diff(edges) / len(drawn)
    plot = _Plot(unit, "% of episodes")
    for place, (name, values, colour) in enumerate(drawn):
        counts, n = np.histogram(values, edges)[0], len(values)
        left = edges[:-1] + width * (place + 0.125 * len(drawn))
        bars = plot.axes.bar(left, 100 * counts / n, width, align="edge", color=colour)
        for bar, inside in zip(bars, names, strict=True):
            bar.set_gid(plot.hover(f"{name}, {inside} {unit}: {bar.get_height():.1f} %"))
        low, high = wilson(counts, n)
        plot.axes.vlines(left + width / 2, 100 * low, 100 * high, "#59636e", linewidth=0.8)
    plot.axes.set_xlim(edges[0], edges[-1])
    means = "; ".join(f"{name} mean {np.mean(values):.4g}" for name, values, _ in drawn)
    keys = [(f"{name} (n = {len(values)})", colour) for name, values, colour in drawn]
    return plot.html(title, f"{title}: share of episodes by {unit}; {means}", keys)


def bins(values: Floats) -> tuple[Floats, list[str]]:
    """Edges, one more than bins, and the bins' names; a value on an inner edge is in the bin that begins there."""
    low, high = values.min(), values.max()
    if high - low < _WHOLE and not np.any(values % 1):
        whole = np.arange(low, high + 1)
        return np.append(whole, high + 1) - 0.5, [f"{n:g}" for n in whole]
    if np.isclose(low, high):
        low, high = low - max(0.5, abs(low) / 100), high + max(0.5, abs(high) / 100)
    edges = np.array(MaxNLocator(_BINS, steps=_STEPS).tick_values(low, high))
    # Rounding can leave the outermost values outside.
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    return edges, [f"{start:.4g} to {end:.4g}" for start, end in pairwise(edges)]


def wilson(successes: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    """Ends of the 95 % score interval of a share of n ≥ 1, inside [0, 1]. Source: Wilson 1927."""
    k, n = np.asarray(successes, float), np.asarray(n, float)
    middle = (k + _Z**2 / 2) / (n + _Z**2)
    half = _Z / (n + _Z**2) * np.sqrt(k * (n - k) / n + _Z**2 / 4)
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)


class _Plot:
    def __init__(self, x_label: str, y_label: str, height: float = _HEIGHT) -> None:
        left, bottom = (0.72 if y_label else 0.15) / _WIDTH, 0.42 / height
        box = (left, bottom, 1 - left - 0.22 / _WIDTH, 1 - bottom - 0.18 / height)
        self.figure = Figure(figsize=(_WIDTH, height))
        self.axes = self.figure.add_axes(box, xlabel=x_label, ylabel=y_label)
        self.axes.xaxis.set_major_locator(MaxNLocator(5, steps=_STEPS, integer=bool(y_label), min_n_ticks=1))
        self.axes.yaxis.set_major_locator(MaxNLocator(4, steps=_STEPS))
        self.axes.yaxis.set_label_coords(0.04, 0.5, self.figure.transFigure)
        self.titles: list[str] = []

    def hover(self, title: str) -> str:
        """Id of a part that shows `title` on hover."""
        self.titles.append(title)
        return f"hover-{len(self.titles) - 1}"

    def point(self, x: float, y: float, colour: str, title: str) -> None:
        """Draw a marker with a hover title."""
        self.axes.plot([x], [y], "o", color=colour, clip_on=False, gid=self.hover(title))

    def html(self, title: str, description: str, keys: Sequence[tuple[str, str]]) -> Markup:
        """The <figure>; `description` is read aloud, `keys` are the legend's labels and colours."""
        item = Markup('<li><span class="key" style="background:var(--series-{})"></span>{}</li>')
        items = Markup().join(item.format(int(colour[1:]) + 1, label) for label, colour in keys)
        legend = Markup('<ul class="legend">{}</ul>').format(items) if keys else ""
        figure = Markup("<figure><figcaption>{}</figcaption>{}{}</figure>")
        return figure.format(title, self._svg(description), legend)

    def _svg(self, description: str) -> Markup:
        """The drawing as an element of the page: without header, with CSS variables for colours."""
        file = io.StringIO()
        # Ids are hashes; with the same salt two drawings of a page could share one.
        with rc_context({"svg.hashsalt": ascii(description)}):
            no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            self.figure.savefig(file, format="svg", metadata=no_metadata)
        svg = file.getvalue().partition("<svg ")[2]
        svg = re.sub(r'(?s)<defs>\s*<style.*?</defs>| id="[\w.]+_\d+"| font-family: [^;]+;', "", svg)
        svg = re.sub(r"(?<=: )#([0-9a-f]{6})", lambda colour: _VARIABLES.get(colour[1], colour[0]), svg)
        titles = [f"><title>{escape(title)}</title>" for title in self.titles]
        svg = re.sub(r' id="hover-(\d+)">', lambda at: titles[int(at[1])], svg)
        return Markup('<svg role="img" aria-label="{}" ').format(description) + Markup(svg)
