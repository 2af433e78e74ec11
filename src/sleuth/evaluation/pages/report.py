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

from sleuth.evaluation.figures import figure, interval, number
from sleuth.evaluation.pages.curves import Row, curves
from sleuth.evaluation.pages.episodes import episode_html
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Estimate
from sleuth.types import Trajectory

HEADLINE = ("em", "f1", "valid_format", "searches")
"""Figures of the first table; those that no row has are left out."""


LEGEND = (
    '<p class="legend-line">'
    '<span><span class="swatch" style="background:var(--model)"></span>written by the model</span>'
    '<span><span class="swatch" style="background:var(--world)"></span>by the environment</span>'
    '<span><span class="swatch" style="background:var(--note-bg)"></span>note on the evidence</span>'
    '<span><span class="badge good">gold</span>passage that supports the answer</span>'
    "<span><mark>answer</mark> gold answer in the text</span></p>"
)
"""What the colours of an episode mean."""


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
    write_page(path, title, [_headline(rows), notes_html(notes), curves(metrics), _episodes(trajectories)])


def write_page(path: Path, title: str, sections: Sequence[str]) -> None:
    """Write a page of sections that are HTML already; empty ones are left out."""
    template = Template(
        resources.files("sleuth.evaluation.pages").joinpath("report.html").read_text(encoding="utf-8")
    )
    page = template.substitute(title=escape(title), body="\n".join(filter(None, sections)))
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


def notes_html(notes: Sequence[str]) -> str:
    """A list of remarks; "" for none."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes hint">{items}</ul>' if items else ""


def _episodes(trajectories: Sequence[Trajectory]) -> str:
    if not trajectories:
        return ""
    cards = "".join(episode_html(t, opened=i == 0) for i, t in enumerate(trajectories))
    return f"<h2>Episodes</h2>{LEGEND}{cards}"
