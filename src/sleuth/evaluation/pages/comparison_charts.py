"""The charts of a comparison: scores with intervals, lengths, risk over coverage, cost, training curves.

Each takes plain values and gives a <figure>, or "" where there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sleuth.evaluation.comparing.anatomy import selective
from sleuth.evaluation.comparing.comparison import Column
from sleuth.evaluation.comparing.cost import Cost
from sleuth.evaluation.comparing.systems import COSTS, System
from sleuth.evaluation.figures import figure, interval, number
from sleuth.evaluation.pages.bars import Dot, Sample, dot_chart, histogram, tail, wilson
from sleuth.evaluation.pages.charts import COLOURS, Series, line_chart
from sleuth.metrics.selective import RiskCoverage

SPREADS = ("response_tokens", "steps", "searches")
"""Figures whose distribution over episodes is drawn."""
_POINTS = 100
"""Points of a risk–coverage curve that are drawn."""


def colour_of(place: int) -> int:
    """The colour of the system in this place, on every chart."""
    return place % COLOURS + 1


def scores(columns: Sequence[Column], name: str) -> str:
    """One figure of every system with its interval."""
    dots = []
    for place, column in enumerate(columns):
        estimate = column.figures.get(name)
        if estimate is None or estimate.value is None:
            continue
        factor = 100.0 if figure(name).unit == "%" else 1.0
        low, high = (None if end is None else factor * end for end in (estimate.low, estimate.high))
        text = f"{number(estimate.value, name)} {interval(estimate, name)}".strip()
        told = f"{text}, n = {estimate.n}"
        dots.append(Dot(column.name, factor * estimate.value, low, high, told, colour_of(place)))
    return dot_chart(figure(name).label, f"{figure(name).unit}, 95 % intervals", dots)


def spread(systems: Sequence[System], name: str) -> str:
    """The distribution of one figure over episodes, seeds pooled."""
    samples = [
        Sample(tail(column.name), [value for member in members for value in member.values(name)])
        for column, members in systems
    ]
    unit = figure(name).unit
    words = unit if unit not in ("%", "per question") else figure(name).label.lower()
    return histogram(figure(name).label, words, samples)


def curves_of(systems: Sequence[System]) -> list[tuple[str, RiskCoverage]]:
    """The risk–coverage curve of each system that has confidences; of several seeds the first's."""
    found = []
    for column, members in systems:
        errors = [None if (em := r.metrics.get("em")) is None else 1.0 - em for r in members[0].records]
        curve = selective(members[0].parts(), errors)
        if curve is not None:
            found.append((column.name, curve))
    return found


def risk_over_coverage(systems: Sequence[System]) -> str:
    """Risk over coverage with 95 % Wilson bands; "" if no system has a confidence."""
    colours = {column.name: colour_of(place) for place, (column, _) in enumerate(systems)}
    series = []
    for name, curve in curves_of(systems):
        chosen = _places(curve.n)
        points = [(100 * coverage, 100 * risk) for coverage, risk in (curve.points[k - 1] for k in chosen)]
        band = [
            (100 * k / curve.n, *(100 * end for end in wilson(min(float(k), curve.errors[k - 1]), k)))
            for k in chosen
        ]
        label = f"{tail(name)}: AURC {100 * curve.aurc:.1f} % (n = {curve.n})"
        series.append(Series(label, points, [(x, low, high) for x, low, high in band], colours[name]))
    return line_chart(
        "Risk over coverage",
        "wrong answers, %",
        series,
        "% of questions answered, surest first",
        smooth=False,
    )


def _places(n: int) -> list[int]:
    """At most about _POINTS numbers of questions, evenly spread, n among them."""
    return sorted({max(1, round(n * i / min(n, _POINTS))) for i in range(1, min(n, _POINTS) + 1)})


def cost_chart(name: str, found: Mapping[str, Cost]) -> str:
    """One cost of every system that answered anything rightly."""
    dots = [
        Dot(system, cost.value, cost.low, cost.high, f"{cost_text(cost)}, n = {cost.n}", colour_of(place))
        for place, (system, cost) in enumerate(found.items())
        if cost.value is not None
    ]
    return dot_chart(f"{COSTS[name].capitalize()} per right answer", f"{COSTS[name]}, 95 % intervals", dots)


def cost_text(cost: Cost) -> str:
    """Value and interval in words; an interval without upper end says so."""
    if cost.value is None:
        return "–"
    if cost.low is None:
        return _amount(cost.value)
    return f"{_amount(cost.value)} [{_amount(cost.low)}, {'no bound' if cost.high is None else _amount(cost.high)}]"


def _amount(value: float) -> str:
    """Three digits that matter; more would only seem exact."""
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"
