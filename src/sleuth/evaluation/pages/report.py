"""write_report: the page of one run, with a table of headline figures, training curves and episodes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sleuth.evaluation.comparing.tables import Grid, cell, figure_label
from sleuth.evaluation.figures import HEADLINE
from sleuth.evaluation.pages.curves import Row, training_curves
from sleuth.evaluation.pages.episodes import episode_view
from sleuth.evaluation.pages.page import write_page
from sleuth.evaluation.statistics import Estimate
from sleuth.types import Trajectory


def write_report(
    path: Path,
    *,
    title: str,
    stages: Mapping[str, Mapping[str, Estimate]],
    metrics: Sequence[Row],
    trajectories: Sequence[Trajectory],
    notes: Sequence[str] = (),
) -> None:
    """Write the page from each evaluation's figures, the rows of metrics.jsonl and episodes; any may be empty."""
    write_page(
        path,
        "report.html",
        title=title,
        headline=_headline(stages),
        notes=notes,
        curves=training_curves({"": metrics}),
        episodes=[episode_view(trajectory) for trajectory in trajectories],
    )


def _headline(stages: Mapping[str, Mapping[str, Estimate]]) -> Grid | None:
    names = [name for name in HEADLINE if any(name in figures for figures in stages.values())]
    rows = []
    for stage, figures in stages.items():
        n = max((figures[name].n for name in names if name in figures), default=0)
        rows.append((stage, *(cell(figures.get(name), name) for name in names), str(n)))
    heads = ("", *map(figure_label, names), "Questions")
    return Grid("", heads, tuple(rows), words=1) if names else None
