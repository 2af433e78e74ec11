"""The result tables of the papers as data, and an evaluation of ours next to them.

published.json holds figures exactly as printed, table by table; nothing is recomputed. No two figures are called
comparable here: what is known to differ, or is not stated, is listed with them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from sleuth.errors import DataError
from sleuth.evaluation.result import Evaluation
from sleuth.evaluation.statistics import Estimate, bootstrap_mean
from sleuth.registry import nearest

PATH = Path(__file__).with_name("published.json")
SHARES = (
    "em",
    "f1",
    "llm_judge",
    "evidence_recall",
    "kept_alone",
    "recall_at_5",
    "ndcg_at_5",
    "preference_accuracy",
)
"""Metrics in [0, 1]; any other is a plain number."""
COUNTS = (
    "latency",
    "train_questions",
    "dev_questions",
    "test_questions",
    "paragraphs",
    "hops_1",
    "hops_2",
    "hops_3",
    "hops_4",
    "hops",
    "preference_accuracy",
    "preference_loss",
)
"""Figures that no evaluation of answers has."""
NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One cell of one published table, with its known origin; data set and metric have our names."""

    source: str  # The paper or repository, such as "Eval-RAR".
    table: str
    method: str
    model: str
    dataset: str
    metric: str
    printed: float
    value: float  # The printed number as a share in [0, 1], if the metric is one.
    split: str
    n: int | None
    normaliser: str
    decoding: str
    retriever: str
    note: str

    @property
    def place(self) -> str:
        """Paper and table."""
        return f"{self.source}, {self.table}"


@dataclass(frozen=True, slots=True)
class Placement:
    """One figure of an evaluation among the published ones of the same data set and metric."""

    dataset: str
    metric: str
    model: str
    ours: Estimate
    published: list[PublishedFigure]  # Highest value first.
    contrasts: Mapping[str, Mapping[str, tuple[str, str]]]
    """Place → questions, normaliser, decoding or retriever → ours and theirs, where they differ or may differ."""
    notes: Mapping[str, str]  # Place → its note, where it has one.


def published(dataset: str = "", method: str = "") -> list[PublishedFigure]:
    """The figures of a data set and of methods whose name holds `method`. Raises DataError if there is none.

    A figure that a paper prints again in a later table is listed once.
    """
    once: dict[tuple[object, ...], PublishedFigure] = {}
    for f in _all():
        once.setdefault((f.source, f.method, f.model, f.dataset, f.metric, f.split, f.value), f)
    figures = [figure for figure in once.values() if dataset in ("", figure.dataset)]
    if not figures:
        raise DataError(f"no published figures on {dataset!r}{nearest(dataset, {f.dataset for f in _all()})}")
    wanted = [figure for figure in figures if method.casefold() in figure.method.casefold()]
    if not wanted:
        known = nearest(method, {figure.method for figure in figures})
        raise DataError(f"no published figures of a method {method!r}{known}")
    return wanted


def printed(source: str, table: str) -> list[PublishedFigure]:
    """Every figure of one table, such as ("ARENA", "Table 3"); "Table 3 (dev)" is a part of "Table 3"."""
    return [f for f in _all() if f.source == source and f.table.partition(" (")[0] == table]


@cache
def _all() -> tuple[PublishedFigure, ...]:
    sources = msgspec.json.decode(PATH.read_bytes())["sources"]
    tables = [(source["name"], table) for source in sources for table in source["tables"]]
    return tuple(figure for name, table in tables for figure in _figures(name, table))


def _figures(source: str, table: Mapping[str, Any]) -> Iterator[PublishedFigure]:
    shared = {name: table[name] for name in ("table", "normaliser", "decoding", "retriever", "note")}
    for method, model, *cells in table["rows"]:
        for (dataset, metric), printed in zip(table["columns"], cells, strict=True):
            if printed is None:
                continue
            is_percent = table["unit"] == "percent" and metric in SHARES
            yield PublishedFigure(
                source=source,
                method=method,
                model=model,
                dataset=dataset,
                metric=metric,
                printed=printed,
                value=round(printed / 100, 6) if is_percent else printed,
                **table["datasets"][dataset],
                **shared,
            )


def place(evaluation: Evaluation, figures: Sequence[PublishedFigure]) -> list[Placement]:
    """The evaluation's figures that some of `figures` have too. Raises DataError if there is none."""
    records = evaluation.records()
    groups: dict[tuple[str, str], list[PublishedFigure]] = {}
    for figure in figures:
        groups.setdefault((figure.dataset, figure.metric), []).append(figure)
    found = []
    for (dataset, metric), same in groups.items():
        values = [record.metrics.get(metric) for record in records if record.dataset == dataset]
        ours = bootstrap_mean(values)
        if ours.value is None:
            continue
        origin, tables = origin_of(evaluation, dataset, len(values)), {each.place: each for each in same}
        found.append(
            Placement(
                dataset=dataset,
                metric=metric,
                model=str(evaluation.settings.get("model", "")),
                ours=ours,
                published=sorted(same, key=lambda figure: -figure.value),
                contrasts={name: _contrasts(origin, figure) for name, figure in tables.items()},
                notes={name: figure.note for name, figure in tables.items() if figure.note},
            )
        )
    if not found:
        named = ", ".join(sorted({record.dataset or "(unnamed)" for record in records}))
        known = ", ".join(sorted({figure.dataset for figure in figures}))
        raise DataError(f"{evaluation.folder}: no published figure on data set {named}; there are: {known}")
    return found


def origin_of(evaluation: Evaluation, dataset: str, n: int) -> dict[str, str]:
    """Questions, normaliser, decoding and retriever of an evaluation, in the words of the published tables."""
    settings = evaluation.settings
    decoding, identity = settings.get("decoding", {}), settings.get("retriever", {})
    sampled = f"sampled at temperature {decoding.get('temperature')}, top_p {decoding.get('top_p')}"
    passages = f", {identity['num_passages']} passages" if "num_passages" in identity else ""
    top_k = settings.get("limits", {}).get("top_k")
    return {
        "questions": f"{evaluation.source}, n = {n}" if evaluation.source else f"n = {n}",
        "normaliser": str(settings.get("rules", {}).get(dataset, {}).get("normaliser", NOT_STATED)),
        "decoding": "greedy" if decoding.get("method") == "greedy" else sampled,
        "retriever": f"{identity.get('retriever', NOT_STATED)}{passages}, top {top_k}",
    }


def _contrasts(ours: Mapping[str, str], figure: PublishedFigure) -> dict[str, tuple[str, str]]:
    theirs = {name: getattr(figure, name) for name in ("normaliser", "decoding", "retriever")}
    theirs["questions"] = f"{figure.split}, n = {NOT_STATED if figure.n is None else figure.n}"
    return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}
