"""Training curves of one run, or of several runs in the same charts, from the rows of metrics.jsonl."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from sleuth.evaluation.pages.page import TEMPLATES
from sleuth.evaluation.pages.plots import Floats, Line, line_chart

Row = Mapping[str, object]  # One line of metrics.jsonl: "phase", "step" and figures named "room/name".


class Chart(NamedTuple):
    """One chart of training curves."""

    title: str
    unit: str
    names: str  # Pattern of the figures to draw.
    factor: float = 1.0
    smallest: float = 0.0  # Values below it are rounding errors of float32 and drawn as 0.
    compared: str = ""  # The figure for which several runs are compared, where `names` can fit more than one.


CHARTS = (
    Chart("Reward", "mean per episode", r"reward/(?!zero_variance|.*_se).*", compared="reward/total"),
    Chart("Right answers", "% of episodes", "rollouts/right", 100.0),
    Chart("Valid format", "% of episodes", "rollouts/valid_format", 100.0),
    Chart("Searches", "per episode", "rollouts/searches"),
    Chart("Response length", "tokens", "rollouts/response_length"),
    Chart("KL to the reference", "nats per token", r"update/kl(_.*)?", compared="update/kl_start"),
    # With one update a batch the advantages sum to 0 at ratios of 1.
    Chart("Loss", "objective", "update/loss", smallest=1e-6),
    Chart("Entropy", "nats per token", "update/entropy"),
)
"""Charts in sight; the other figures of a single run are folded away."""
PHASES = {"warm_start": "Supervised warm start", "train": "Reinforcement learning"}


def training_curves(runs: Mapping[str, Sequence[Row]]) -> Markup:
    """Charts by phase: every figure of a single run, or a line for each run in the main ones; empty without any."""
    shown = "|".join(chart.names for chart in CHARTS)
    phases = []
    for phase in dict.fromkeys(str(row.get("phase", "")) for rows in runs.values() for row in rows):
        columns = {run: _columns(rows, phase) for run, rows in runs.items()}
        charts = [_draw(chart, columns) for chart in CHARTS]
        rest = [] if len(runs) > 1 else [(name, at) for one in columns.values() for name, at in one.items()]
        others = [
            line_chart(name, "value", [Line(name, *at)]) for name, at in rest if not re.fullmatch(shown, name)
        ]
        if any(charts) or others:
            phases.append((PHASES.get(phase) or phase.replace("_", " "), charts, others))
    return Markup(TEMPLATES.get_template("curves.html").render(phases=phases))


def _columns(rows: Sequence[Row], phase: str) -> dict[str, Floats]:
    """Figure → steps and values, shape [2, n], of the finite numbers in one phase."""
    found: dict[str, list[tuple[object, object]]] = {}
    for row in rows:
        step = row.get("step")
        if str(row.get("phase", "")) == phase and _is_number(step):
            for name, value in row.items():
                if name != "step" and _is_number(value):
                    found.setdefault(name, []).append((step, value))
    return {name: np.array(sorted(points), dtype=float).T for name, points in found.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _draw(chart: Chart, columns: Mapping[str, Mapping[str, Floats]]) -> Markup:
    is_alone, lines = len(columns) == 1, []
    for run, found in columns.items():
        names = [name for name in found if re.fullmatch(chart.names, name)]
        main = chart.compared if chart.compared in found else next(iter(names), "")
        for name in names if is_alone else [main]:
            label = name.rpartition("/")[2].replace("_", " ") if is_alone else run
            steps, values = found.get(name, np.empty((2, 0)))
            values = np.where(abs(values) < chart.smallest, 0, values)
            half = 1.96 * _errors(found, name, steps)
            band = (values - half, values + half) if len(half) else ((), ())
            lines.append(
                Line(label, steps, chart.factor * values, *(chart.factor * np.asarray(b) for b in band))
            )
    return line_chart(chart.title, chart.unit, lines)


def _errors(found: Mapping[str, Floats], name: str, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors of a figure at these steps, NaN where none was logged; empty if none ever was."""
    known, errors = found.get(f"{name}_se", np.empty((2, 0)))
    at = dict(zip(known.tolist(), errors.tolist(), strict=True))
    return np.array([at.get(step, np.nan) for step in steps.tolist()] if at else [])
