"""The result tables of the papers as data, and an evaluation of ours beside them.

published.json holds figures exactly as printed, table by table; nothing is recomputed. Two figures
are never called comparable here: what is known to differ, or is not stated, stands beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.evaluation.records import Record
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.registry import nearest

PATH = Path(__file__).with_name("published.json")
SHARES = ("em", "f1", "llm_judge", "evidence_recall", "recall_at_5", "ndcg_at_5")
"""Metrics in [0, 1]; any other is a plain number."""
NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One cell of one published table, with what is known of how it came about."""

    source: str
    """The paper or repository, such as "Eval-RAR"."""
    table: str
    method: str
    model: str
    dataset: str
    """As our readers call it."""
    metric: str
    """As our evaluations call it; "llm_judge" is a figure that they do not have."""
    printed: float
    """The number in the table."""
    value: float
    """The same as a share in [0, 1], if the metric is one."""
    split: str
    n: int | None
    """Questions; None where not stated."""
    normaliser: str
    """One of ours, or "not stated"."""
    decoding: str
    retriever: str
    note: str


@dataclass(frozen=True, slots=True)
class Contrast:
    """One respect in which our figure and a table's came about differently, or may have."""

    what: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure of an evaluation among the published ones of the same data set and metric."""

    dataset: str
    metric: str
    model: str
    ours: Estimate
    published: tuple[PublishedFigure, ...]
    """Highest value first."""
    contrasts: Mapping[str, tuple[Contrast, ...]]
    """"source, table" → what differs; models differ row by row and are in the rows."""
    notes: Mapping[str, str]
    """"source, table" → what else must be known of it."""


class _Questions(msgspec.Struct, forbid_unknown_fields=True):
    split: str
    n: int | None


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    table: str
    note: str
    unit: str
    normaliser: str
    decoding: str
    retriever: str
    datasets: dict[str, _Questions]
    columns: list[tuple[str, str]]
    rows: list[list[str | float | None]]


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    name: str
    authors: str
    title: str
    tables: list[_Table]


class _Sources(msgspec.Struct, forbid_unknown_fields=True):
    sources: list[_Source]


def published(dataset: str = "", method: str = "") -> list[PublishedFigure]:
    """The figures of a data set (all if "") and of methods whose name holds `method`, whatever its case.

    DataError with the known names if there is none.
    """
    figures = _all()
    names = {figure.dataset for figure in figures}
    if dataset and dataset not in names:
        raise DataError(f"no published figures on {dataset!r}{nearest(dataset, names)}")
    wanted = [
        figure
        for figure in figures
        if dataset in ("", figure.dataset) and method.casefold() in figure.method.casefold()
    ]
    if not wanted:
        methods = {figure.method for figure in figures if dataset in ("", figure.dataset)}
        raise DataError(f"no published figures of a method {method!r}{nearest(method, methods)}")
    return wanted


@cache
def _all() -> tuple[PublishedFigure, ...]:
    sources = msgspec.json.decode(PATH.read_bytes(), type=_Sources).sources
    return tuple(
        figure
        for source in sources
        for table in source.tables
        for row in table.rows
        for figure in _figures(source, table, row)
    )


def _figures(source: _Source, table: _Table, row: Sequence[str | float | None]) -> list[PublishedFigure]:
    found = []
    for (dataset, metric), printed in zip(table.columns, row[2:], strict=True):
        if not isinstance(printed, int | float):
            continue
        is_percent = table.unit == "percent" and metric in SHARES
        found.append(
            PublishedFigure(
                source=source.name,
                table=table.table,
                method=str(row[0]),
                model=str(row[1]),
                dataset=dataset,
                metric=metric,
                printed=printed,
                value=round(printed / 100, 6) if is_percent else printed,
                split=table.datasets[dataset].split,
                n=table.datasets[dataset].n,
                normaliser=table.normaliser,
                decoding=table.decoding,
                retriever=table.retriever,
                note=table.note,
            )
        )
    return found


def beside(evaluation: Evaluation, figures: Sequence[PublishedFigure]) -> list[Beside]:
    """Every figure of the evaluation that some of `figures` have too, data set by data set.

    DataError if there is none: another data set, or none of its metrics.
    """
    records = evaluation.records()
    pairs = list(dict.fromkeys((figure.dataset, figure.metric) for figure in figures))
    found = []
    for dataset, metric in pairs:
        own = [record for record in records if record.dataset == dataset]
        ours = bootstrap_mean([record.metrics.get(metric) for record in own])
        if ours.value is not None:
            same = [f for f in figures if (f.dataset, f.metric) == (dataset, metric)]
            found.append(_beside(evaluation, own, ours, same))
    if not found:
        named = ", ".join(sorted({record.dataset or "(unnamed)" for record in records}))
        known = ", ".join(sorted({figure.dataset for figure in figures}))
        raise DataError(
            f"{evaluation.folder}: no published figure stands beside data set {named}; there are: {known}"
        )
    return found


def _beside(
    evaluation: Evaluation, own: Sequence[Record], ours: Estimate, same: Sequence[PublishedFigure]
) -> Beside:
    dataset = same[0].dataset
    settings = ours_of(evaluation, dataset, len(own))
    first = {f"{figure.source}, {figure.table}": figure for figure in reversed(same)}
    tables = dict(reversed(first.items()))
    return Beside(
        dataset=dataset,
        metric=same[0].metric,
        model=str(evaluation.settings.get("model", "")),
        ours=ours,
        published=tuple(sorted(same, key=lambda figure: -figure.value)),
        contrasts={name: _contrasts(settings, figure) for name, figure in tables.items()},
        notes={name: figure.note for name, figure in tables.items() if figure.note},
    )


def ours_of(evaluation: Evaluation, dataset: str, n: int) -> dict[str, str]:
    """How our figure came about, in the words of the published tables."""
    settings = evaluation.settings
    decoding = settings.get("decoding", {})
    sampled = f"sampled at temperature {decoding.get('temperature')}, top_p {decoding.get('top_p')}"
    return {
        "questions": f"{evaluation.source}, n = {n}" if evaluation.source else f"n = {n}",
        "normaliser": str(settings.get("rules", {}).get(dataset, {}).get("normaliser", NOT_STATED)),
        "decoding": "greedy" if decoding.get("method") == "greedy" else sampled,
        "retriever": _retriever(settings),
    }


def _retriever(settings: Mapping[str, Any]) -> str:
    identity = settings.get("retriever", {})
    passages = f", {identity['num_passages']} passages" if "num_passages" in identity else ""
    return f"{identity.get('retriever', NOT_STATED)}{passages}, top {settings.get('limits', {}).get('top_k')}"


def _contrasts(ours: Mapping[str, str], figure: PublishedFigure) -> tuple[Contrast, ...]:
    number = NOT_STATED if figure.n is None else str(figure.n)
    theirs = {
        "questions": f"{figure.split}, n = {number}",
        "normaliser": figure.normaliser,
        "decoding": figure.decoding,
        "retriever": figure.retriever,
    }
    return tuple(Contrast(what, ours[what], theirs[what]) for what in theirs if ours[what] != theirs[what])
