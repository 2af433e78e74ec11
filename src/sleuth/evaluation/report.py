"""write_report: a run as one HTML file that opens from disk: headline table, curves, episodes to read.

The page loads nothing and runs nothing (its content policy forbids both), and every text that
comes from data, models or passages is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from sleuth.evaluation.charts import line_chart, series_of
from sleuth.evaluation.episodes import episode_html
from sleuth.evaluation.figures import figure, interval, number
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Estimate
from sleuth.types import Trajectory

HEADLINE = ("em", "f1", "valid_format", "searches")
"""Figures of the first table; those that no row has are left out."""

Row = Mapping[str, object]
"""One line of metrics.jsonl: "phase", "step" and figures named "room/name"."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One line of the headline table."""

    name: str
    """Such as "base" or "after GRPO"."""
    metrics: Mapping[str, Estimate]

    @classmethod
    def of(cls, name: str, evaluation: Evaluation) -> ReportRow:
        """The line of an evaluation."""
        return cls(name, evaluation.metrics)


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of training curves: the first figures that a row may hold under these names."""

    title: str
    unit: str
    keys: tuple[str, ...]
    factor: float = 1.0


CHARTS = (
    Chart("Reward", "mean per episode", ("reward/total", "reward/*")),
    Chart("Valid format", "% of episodes", ("rollouts/valid_format",), 100.0),
    Chart("Searches", "per episode", ("rollouts/searches",)),
    Chart("Response length", "tokens", ("rollouts/response_length",)),
    Chart("KL to the reference", "nats per token", ("update/kl", "update/kl_*")),
    Chart("Loss", "objective", ("update/loss",)),
    Chart("Entropy", "nats per token", ("update/entropy",)),
)
"""What is always worth seeing; the other figures follow, folded away."""
PHASES = {"warm_start": "Supervised warm start", "train": "Reinforcement learning"}
_ASIDE = ("_std", "_s", "/zero_variance", "/epoch")
"""Endings of names that a "*" above does not take in."""


def write_report(
    path: Path,
    *,
    title: str,
    rows: Sequence[ReportRow],
    metrics: Sequence[Row],
    trajectories: Sequence[Trajectory],
    notes: Sequence[str] = (),
) -> None:
    """Write the page; any part may be empty. `metrics` are the rows of a run's metrics.jsonl."""
    template = Template(
        resources.files("sleuth.evaluation").joinpath("report.html").read_text(encoding="utf-8")
    )
    page = template.substitute(
        title=escape(title),
        headline=_headline(rows),
        notes=_notes(notes),
        curves=_curves(metrics),
        episodes=_episodes(trajectories),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate in a model's output cannot be encoded; it must not cost the whole report.
    path.write_text(page, encoding="utf-8", errors="replace")


def _headline(rows: Sequence[ReportRow]) -> str:
    names = [name for name in HEADLINE if any(name in row.metrics for row in rows)]
    if not names:
        return ""
    heads = "".join(
        f"<th>{escape(figure(n).label)}<small>{escape(figure(n).unit)}</small></th>" for n in names
    )
    lines = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th>{"".join(_cell(row, name) for name in names)}{_count(row, names)}</tr>'
        for row in rows
    )
    return (
        f'<div class="card scroll headline"><table><thead><tr><th></th>{heads}<th>Questions</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
        '<p class="hint">Brackets: 95 % bootstrap interval over questions.</p>'
    )


def _cell(row: ReportRow, name: str) -> str:
    estimate = row.metrics.get(name, Estimate(None, None, None, 0))
    label = escape(f"{figure(name).label}, {figure(name).unit}", quote=True)
    return (
        f'<td data-label="{label}"><span><span class="value">{number(estimate.value, name)}</span> '
        f'<span class="interval">{interval(estimate, name)}</span></span></td>'
    )


def _count(row: ReportRow, names: Sequence[str]) -> str:
    counts = [row.metrics[name].n for name in names if name in row.metrics]
    return f'<td data-label="Questions">{max(counts, default=0)}</td>'


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes hint">{items}</ul>' if items else ""


def _curves(metrics: Sequence[Row]) -> str:
    phases = list(dict.fromkeys(str(row.get("phase", "")) for row in metrics))
    sections = [
        _phase(phase, [row for row in metrics if str(row.get("phase", "")) == phase]) for phase in phases
    ]
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
            line_chart(chart.title, chart.unit, [series_of(rows, k, _label(k), chart.factor) for k in keys])
        )
    others = [line_chart(name, "value", [series_of(rows, name, name)]) for name in names if name not in used]
    shown, folded = "".join(main), "".join(others)
    if not shown and not folded:
        return ""
    heading = f"<h3>{escape(PHASES.get(phase) or phase.replace('_', ' '))}</h3>" if phase else ""
    more = (
        f'<details class="more"><summary>other figures</summary><div class="charts">{folded}</div></details>'
    )
    return f'{heading}<div class="charts">{shown}</div>{more if folded else ""}'


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


def _episodes(trajectories: Sequence[Trajectory]) -> str:
    if not trajectories:
        return ""
    legend = (
        '<p class="legend-line">'
        '<span><span class="swatch" style="background:var(--model)"></span>written by the model</span>'
        '<span><span class="swatch" style="background:var(--world)"></span>by the environment</span>'
        '<span><span class="swatch" style="background:var(--note-bg)"></span>note on the evidence</span>'
        '<span><span class="badge good">gold</span>passage that supports the answer</span>'
        "<span><mark>answer</mark> gold answer in the text</span></p>"
    )
    cards = "".join(episode_html(t, opened=i == 0) for i, t in enumerate(trajectories))
    return f"<h2>Episodes</h2>{legend}{cards}"
