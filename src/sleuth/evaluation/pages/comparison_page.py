"""write_comparison: the page of a comparison, with scores, outcomes, costs, distributions, curves and episodes.

Episodes are read one at a time and few are shown, so that the page of 10,000 questions stays small.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from sleuth.evaluation.comparing.comparison import MAIN, Column, Comparison
from sleuth.evaluation.comparing.entries import Entry, flat
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.outcomes import selective
from sleuth.evaluation.comparing.systems import COSTS, Cost, System, outcome_grid
from sleuth.evaluation.comparing.tables import Grid, cell, figure_grid, grids
from sleuth.evaluation.figures import figure
from sleuth.evaluation.pages.curves import training_curves
from sleuth.evaluation.pages.page import write_page
from sleuth.evaluation.pages.plots import Dot, Line, dot_chart, histogram, line_chart, wilson
from sleuth.evaluation.pages.side_by_side import chosen_questions, question_cards
from sleuth.evaluation.statistics import Estimate
from sleuth.text import counted

SPREADS = ("response_tokens", "steps", "searches")
_POINTS = 100  # Most points of a risk–coverage curve.


def write_comparison(
    path: Path, entries: Sequence[Entry], comparison: Comparison, systems: Sequence[System]
) -> None:
    """Write the page of a comparison of `entries`; `systems` are those of load_systems."""
    overall, *others = grids(comparison)
    main = [name for name in comparison.columns[0].figures if name in (*MAIN, "valid_format", "searches")]
    what = comparison.names[0] if len(entries) == 1 else counted(len(entries), "evaluation")
    costs = {system.name: system.costs() for system in systems}
    keys = chosen_questions(systems)
    settings, different = _settings(entries)
    write_page(
        path,
        "comparison.html",
        title=f"{what} on {counted(comparison.n, 'question')}",
        stamps=comparison.stamps(),
        scores=[_scores(comparison.columns, name) for name in MAIN],
        notes=comparison.notes(),
        main=figure_grid("Scores", comparison, main),
        overall=overall,
        grids=[*others, outcome_grid(systems)],
        classes=CLASSES.values(),
        costs=[_cost_chart(costs, name) for name in COSTS],
        without_cost=[name for name, each in costs.items() if each["seconds"].value is None],
        spreads=[_spread(systems, name) for name in SPREADS],
        risk=_risk_over_coverage(systems),
        curves=_curves(entries),
        systems=len(systems),
        chosen=len(keys),
        questions=question_cards(systems, keys),
        seeds=any(len(system.runs) > 1 for system in systems),
        settings=settings,
        different=different,
    )


def _scores(columns: Sequence[Column], name: str) -> Markup:
    factor = 100.0 if figure(name).unit == "%" else 1.0
    dots = []
    for column in columns:
        estimate = column.figures.get(name, Estimate(None, None, None, 0))
        ends = (estimate.value, estimate.low, estimate.high)
        text = f"{cell(estimate, name)}, n = {estimate.n}"
        dots.append(Dot(column.name, text, *(end and factor * end for end in ends)))
    return dot_chart(figure(name).label, f"{figure(name).unit}, 95 % intervals", dots)


def _cost_chart(costs: Mapping[str, Mapping[str, Cost]], name: str) -> Markup:
    dots = [
        Dot(system, f"{each[name]}, n = {each[name].n}", each[name].value, each[name].low, each[name].high)
        for system, each in costs.items()
    ]
    return dot_chart(f"{COSTS[name].capitalize()} per right answer", f"{COSTS[name]}, 95 % intervals", dots)


def _spread(systems: Sequence[System], name: str) -> Markup:
    values = {
        system.name: [v for run in system.runs for v in run.values(name, system.keys) if v is not None]
        for system in systems
    }
    label, unit = figure(name)
    return histogram(label, label.lower() if unit == "per question" else unit, values)


def _risk_over_coverage(systems: Sequence[System]) -> Markup:
    """Risk over coverage of each system that has confidences; of several seeds the first."""
    lines = []
    for system in systems:
        values = system.runs[0].values("em", system.keys)
        curve = selective(system.outcomes[0], [None if em is None else 1.0 - em for em in values])
        if curve is None:
            lines.append(Line(system.name))
            continue
        answered = np.unique(np.linspace(1, curve.n, _POINTS).round().astype(int))
        errors = np.minimum(np.array(curve.errors)[answered - 1], answered)
        low, high = wilson(errors, answered)
        label = f"{system.name}: AURC {100 * curve.aurc:.1f} % (n = {curve.n})"
        columns = (answered / curve.n, errors / answered, low, high)
        lines.append(Line(label, *(100 * column for column in columns)))
    x_label = "% of questions answered, surest first"
    return line_chart("Risk over coverage", "wrong answers, %", lines, x_label, smooth=False)


def _curves(entries: Sequence[Entry]) -> Markup:
    runs = {entry.run.folder: entry.run for entry in entries if entry.run.folder is not None}
    is_short = len({folder.name for folder in runs}) == len(runs)
    rows = {folder.name if is_short else str(folder): run.metrics() for folder, run in runs.items()}
    return training_curves({name: found for name, found in rows.items() if found})


def _settings(entries: Sequence[Entry]) -> tuple[Grid, int]:
    evaluations = [entry.evaluation for entry in entries]
    parts = [{"engine": e.engine, "versions": e.versions, "source": e.source} for e in evaluations]
    found = [flat({**e.settings, **part}) for e, part in zip(evaluations, parts, strict=True)]
    names = dict.fromkeys(name for one in found for name in one)
    differ = [name for name in names if len({one.get(name) for one in found}) > 1]
    labels = {f"≠ {name}": name for name in differ} | {name: name for name in names if name not in differ}
    rows = [(label, *(one.get(name, "–") for one in found)) for label, name in labels.items()]
    heads = ("setting", *(entry.name for entry in entries))
    return Grid("", heads, tuple(rows), words=len(heads)), len(differ)
