"""Training curves of a run, or of several runs over one another, from the rows of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sleuth.evaluation.pages.charts import COLOURS, Series, line_chart, series_of

Row = Mapping[str, object]
"""One line of metrics.jsonl: "phase", "step" and figures named "room/name"."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of training curves: the first figures that a row may hold under these names."""

    title: str
    unit: str
    keys: tuple[str, ...]
    factor: float = 1.0
    rounding: float = 0.0
    """Values below it are drawn as 0, which is what they are but for float32."""

    def series(self, rows: Sequence[Row], key: str, label: str) -> Series:
        """The line of one figure."""
        line = series_of(rows, key, label, self.factor)
        return line._replace(points=[(x, 0.0 if abs(y) < self.rounding else y) for x, y in line.points])


CHARTS = (
    Chart("Reward", "mean per episode", ("reward/total", "reward/*")),
    Chart("Valid format", "% of episodes", ("rollouts/valid_format",), 100.0),
    Chart("Searches", "per episode", ("rollouts/searches",)),
    Chart("Response length", "tokens", ("rollouts/response_length",)),
    Chart("KL to the reference", "nats per token", ("update/kl", "update/kl_*")),
    # One update a batch: advantages that sum to 0, at ratios of 1.
    Chart("Loss", "objective", ("update/loss",), rounding=1e-6),
    Chart("Entropy", "nats per token", ("update/entropy",)),
)
"""What is always worth seeing; the other figures follow, folded away."""
PHASES = {"warm_start": "Supervised warm start", "train": "Reinforcement learning"}
_ASIDE = ("_std", "_s", "/zero_variance", "/epoch")
"""Endings of names that a "*" above does not take in."""


def curves(metrics: Sequence[Row]) -> str:
    """Every figure of one run by phase: the main ones, and the others folded away; "" without any."""
    phases = dict.fromkeys(map(_phase_of, metrics))
    sections = [_phase(phase, [row for row in metrics if _phase_of(row) == phase]) for phase in phases]
    drawn = [section for section in sections if section]
    return f"<h2>Training curves</h2>{''.join(drawn)}" if drawn else ""


def _phase(phase: str, rows: Sequence[Row]) -> str:
    """The charts of one phase, the rest of its figures folded away."""
    names = list(dict.fromkeys(name for row in rows for name in row if name not in ("phase", "step")))
    main, used = [], set[str]()
    for chart in CHARTS:
        keys = _keys(chart, names)
        used.update(keys)
        main.append(
            line_chart(chart.title, chart.unit, [chart.series(rows, key, _label(key)) for key in keys])
        )
    others = [line_chart(name, "value", [series_of(rows, name, name)]) for name in names if name not in used]
    shown, folded = "".join(main), "".join(others)
    if not shown and not folded:
        return ""
    more = (
        f'<details class="more"><summary>other figures</summary><div class="charts">{folded}</div></details>'
    )
    return f'{_heading(phase)}<div class="charts">{shown}</div>{more if folded else ""}'


def _phase_of(row: Row) -> str:
    return str(row.get("phase", ""))


def _heading(phase: str) -> str:
    return f"<h3>{escape(PHASES.get(phase) or phase.replace('_', ' '))}</h3>" if phase else ""


def _keys(chart: Chart, names: Sequence[str]) -> list[str]:
    """Names that belong on a chart, in the order of its keys."""
    found: dict[str, None] = {}
    for key in chart.keys:
        if key.endswith("*"):
            stem = key[:-1]
            found |= dict.fromkeys(n for n in names if n.startswith(stem) and not n.endswith(_ASIDE))
        elif key in names:
            found[key] = None
    return list(found)


def _label(name: str) -> str:
    return name.rpartition("/")[2].replace("_", " ")


def overlaid(runs: Mapping[str, Sequence[Row]]) -> str:
    """The main charts of several runs, one line a run: of each chart the first figure that a run has."""
    phases = dict.fromkeys(_phase_of(row) for rows in runs.values() for row in rows)
    sections = []
    for phase in phases:
        rows = {name: [row for row in all_rows if _phase_of(row) == phase] for name, all_rows in runs.items()}
        charts = "".join(line_chart(chart.title, chart.unit, _one_each(chart, rows)) for chart in CHARTS)
        sections.append(f'{_heading(phase)}<div class="charts">{charts}</div>' if charts else "")
    drawn = "".join(sections)
    return f"<h2>Training curves</h2>{drawn}" if drawn else ""


def _one_each(chart: Chart, runs: Mapping[str, Sequence[Row]]) -> list[Series]:
    """One line for each run, in its own colour on every chart; without points where it has no such figure."""
    series = []
    for place, (run, rows) in enumerate(runs.items()):
        key = next(iter(_keys(chart, list(dict.fromkeys(name for row in rows for name in row)))), "")
        series.append(chart.series(rows, key, run)._replace(colour=place % COLOURS + 1))
    return series
