"""A curve over evaluations of the same questions, each perturbed a little more than the one before.

The first point is not perturbed; every other one is compared with it question by question. Gold
answers are the same at every point, so that a figure always means the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from markupsafe import Markup

from sleuth.evaluation.comparing.tables import Grid, cell, figure_label
from sleuth.evaluation.figures import figure, number, p_value
from sleuth.evaluation.pages.page import write_page
from sleuth.evaluation.pages.plots import Line, line_chart
from sleuth.evaluation.records import Key, Record, key_of
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Difference, Estimate, bootstrap_mean, holm, paired_difference
from sleuth.metrics.answers import exact_match, rules_of
from sleuth.retrievers.perturbed.contradicting import MARK
from sleuth.storage import write_json
from sleuth.types import Trajectory

COMPARED = ("em", "f1", "refused", "wrong_answer", "unanswered")
"""Figures whose change from the first point is tested."""


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation on the curve."""

    level: int
    folder: str  # Name of its evaluation folder.
    n: int
    faults: int
    figures: Mapping[str, Estimate]
    differences: Mapping[str, Difference]
    """This minus the first point, paired by question; empty for the first. p is not adjusted."""
    adjusted: Mapping[str, float | None]
    """p of each difference after Holm's correction for the number of points."""


@dataclass(frozen=True, slots=True)
class PerturbedCurve:
    """How the figures of one system change as its questions or passages get worse."""

    kind: str  # "noise", "paraphrase", "missing-gold" or "contradiction".
    axis: str
    recipe: str
    model: str
    source: str
    points: tuple[Point, ...]  # By rising level.
    charts: tuple[str, ...]  # Figures that this kind is about.
    notes: tuple[str, ...]  # The perturbation, and remarks without which the curve would mislead.

    def to_dict(self) -> dict[str, Any]:
        """The content of robustness-<kind>.json."""
        return dict(msgspec.to_builtins(self))


def outcome(record: Record, name: str) -> float | None:
    """1 if the question was "refused", got a "wrong_answer", or is "unanswered" (neither).

    They and `em` add up to 1 for a question with an answer. None for "wrong_answer" where the data set leaves the question out of EM.
    """
    em, is_refusal = record.metrics.get("em"), record.ending == "refused"
    has_answer = not is_refusal and bool((record.prediction or "").strip())
    if name == "wrong_answer":
        return None if em is None else float(has_answer and not em)
    return float(is_refusal if name == "refused" else not is_refusal and not has_answer)


def followed(record: Record, wrong: Mapping[Key, str]) -> float | None:
    """1 if the answer is the wrong one that was planted; None where none was."""
    planted = wrong.get(record.key)
    return None if planted is None else exact_match(record.prediction, (planted,), rules_of(record.dataset))


def passages_shown(trajectory: Trajectory) -> float | None:
    """Mean number of passages in a search result; None without a result."""
    sizes = [len(segment.hits) for segment in trajectory.segments if segment.hits]
    return sum(sizes) / len(sizes) if sizes else None


_OF_EPISODES: dict[str, Callable[[Trajectory], float | None]] = {
    "passages_shown": passages_shown,
    "contradicted": lambda trajectory: float(any(MARK in hit.passage.id for hit in trajectory.hits)),
}


def _columns(
    evaluation: Evaluation, names: Iterable[str], wrong: Mapping[Key, str]
) -> dict[str, dict[Key, float | None]]:
    """Figures of an evaluation, question by question, in the order of the keys."""
    records = sorted(evaluation.records(), key=lambda record: record.key)
    episodes = {}
    if not _OF_EPISODES.keys().isdisjoint(names):
        for episode in evaluation.trajectories():
            episodes[key_of(episode.question)] = {name: each(episode) for name, each in _OF_EPISODES.items()}

    def value(record: Record, name: str) -> float | None:
        if name in _OF_EPISODES:
            return episodes[record.key][name]
        if name == "followed":
            return followed(record, wrong)
        return record.metrics[name] if name in record.metrics else outcome(record, name)

    return {name: {r.key: value(r, name) for r in records} for name in names}


def points_of(
    evaluations: Sequence[tuple[int, Evaluation]], names: Sequence[str], wrong: Mapping[Key, str]
) -> tuple[Point, ...]:
    """Every evaluation as a point, compared with the first one."""
    wanted = dict.fromkeys((*COMPARED, *names))
    base, *later = [_columns(evaluation, wanted, wrong) for _, evaluation in evaluations]
    differences: list[dict[str, Difference]] = [{}]
    for columns in later:
        paired = {name: [columns[name].get(key) for key in base[name]] for name in COMPARED}
        differences.append({n: paired_difference(list(base[n].values()), paired[n]) for n in COMPARED})
    adjusted = {name: [None, *holm([d[name].p_value for d in differences[1:]])] for name in COMPARED}
    return tuple(
        Point(
            level=level,
            folder=evaluation.folder.name,
            n=evaluation.n,
            faults=evaluation.faults,
            figures={name: bootstrap_mean(list(column.values())) for name, column in columns.items()},
            differences=differences[i],
            adjusted={name: adjusted[name][i] for name in differences[i]},
        )
        for i, ((level, evaluation), columns) in enumerate(zip(evaluations, [base, *later], strict=True))
    )


def write_curve(folder: Path, curve: PerturbedCurve) -> None:
    """Write robustness-<kind>.json and its page, robustness-<kind>.html, into `folder`."""
    write_json(folder / f"robustness-{curve.kind}.json", curve.to_dict())
    write_page(
        folder / f"robustness-{curve.kind}.html",
        "robustness.html",
        title=f"{curve.recipe}: {curve.kind}",
        about=f"{curve.model} · {curve.source} · intervals are 95 %",
        notes=curve.notes,
        charts=[_chart(curve, name) for name in curve.charts],
        levels=curve_grid(curve),
    )


def _chart(curve: PerturbedCurve, name: str) -> Markup:
    label, unit = figure(name)
    factor = 100.0 if unit == "%" else 1.0
    seen = [(point.level, point.figures[name]) for point in curve.points if name in point.figures]
    points = [(level, e.value, e.low, e.high) for level, e in seen if e.value is not None]
    levels, *ends = np.array(points, dtype=float).reshape(-1, 4).T
    counts = sorted({estimate.n for _, estimate in seen})
    n = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    line = Line(label, levels, *(factor * end for end in ends))
    return line_chart(f"{label}, n = {n}", unit, [line], curve.axis, smooth=False)


def curve_grid(curve: PerturbedCurve) -> Grid:
    """The table of a curve: for each level the figures, with their changes and adjusted p."""
    columns = [[curve.axis, *(str(point.level) for point in curve.points)]]
    for name in curve.charts:
        columns.append([figure_label(name), *(cell(point.figures[name], name) for point in curve.points)])
        if name in COMPARED:
            changes = [(point.differences.get(name), point.adjusted.get(name)) for point in curve.points]
            texts = [d and f"{number(d.value, name, signed=True)}, p {p_value(p)}" for d, p in changes]
            columns.append(["change, Holm's p", *(text or "" for text in texts)])
    headers, *rows = zip(*columns, ["n", *(str(point.n) for point in curve.points)], strict=True)
    return Grid("Levels", headers, tuple(rows), words=1)
