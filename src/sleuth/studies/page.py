"""The page of a study: ours next to the published figures, differences, curves, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sleuth.evaluation.comparing.tables import Grid, cell, figure_label
from sleuth.evaluation.figures import FIGURES, figure, number, p_value
from sleuth.evaluation.pages.page import write_page
from sleuth.evaluation.pages.plots import Line, histogram, line_chart
from sleuth.evaluation.statistics import Estimate


def write_study(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page of an outcome."""
    seeds = _listed(result["seeds"])
    settings = f" · {' '.join(result['settings'])}" if result["settings"] else ""
    missing = [f"{row['label']}: {row['missing']}." for row in result["rows"] if row["missing"]]
    failed = [f"{folder}: {reason}" for folder, reason in result["failed"].items()]
    write_page(
        path,
        "study.html",
        title=f"{result['study']}: {result['title']}",
        about=f"{result['scale']} scale · seeds {seeds} · intervals are 95 %{settings}",
        notes=[*result["notes"], *missing, *(f"FAILED: {line}" for line in failed)],
        table=table(result),
        also_published=also_published(result),
        differences=_differences(result),
        differs=_differs(result),
        overlap=_overlap(result),
        charts=[*_noise(result), *_spread(result), *_curves(result)],
    )


def table(result: Mapping[str, Any]) -> Grid | None:
    """A row for each row of the study: ours by data set, noise and measure, training figures, then published ones."""
    columns = dict.fromkeys(_key(f) for row in result["rows"] for f in row["figures"])
    last = dict.fromkeys(name for row in result["rows"] for name in row["last"])
    printed = dict.fromkeys((f["dataset"], f["measure"]) for row in result["rows"] for f in row["published"])
    if not (columns or last or printed):
        return None
    levels = len({noise for _, noise, _ in columns}) > 1
    heads = [f"{data} {f'+{noise} ' if levels else ''}{figure_label(m)}" for data, noise, m in columns]
    rows = []
    for row in result["rows"]:
        own = {_key(f): cell(_estimate(f), f["measure"]) for f in row["figures"]}
        theirs = {(f["dataset"], f["measure"]): f for f in row["published"]}
        cells = [own.get(key, "–") for key in columns]
        cells += [_trained(row["last"].get(name), name) for name in last]
        cells += [number(theirs[k]["value"], k[1]) if k in theirs else "–" for k in printed]
        part = row["seeds"] and row["seeds"] != sorted(result["seeds"])
        rows.append((f"{row['label']} (seeds {_listed(row['seeds'])})" if part else row["label"], *cells))
    published = [f"published: {data} {figure_label(m)}" for data, m in printed]
    trained = [figure_label(_named(name)) if _named(name) in FIGURES else name for name in last]
    return Grid("Ours and published", ("row", *heads, *trained, *published), tuple(rows), words=1)


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _named(name: str) -> str:
    return name.replace("/", "_")


def _trained(value: float | None, name: str) -> str:
    """Cell of a training figure, in the unit of the published one where it has one."""
    if value is None:
        return "–"
    return number(value, _named(name)) if _named(name) in FIGURES else f"{value:.3g}"


def also_published(result: Mapping[str, Any]) -> Grid | None:
    """Figures of the same published table without a figure of ours to compare: other splits, other systems."""
    rows = tuple(
        (
            f["method"],
            f["model"],
            f["dataset"],
            f["split"],
            figure_label(f["measure"]),
            number(f["value"], f["measure"]),
        )
        for f in result["also_published"]
    )
    heads = ("row", "model", "data", "split", "figure", "published")
    return Grid("Also published", heads, rows, words=5) if rows else None


def _key(f: Mapping[str, Any]) -> tuple[str, int, str]:
    return f["dataset"], f["noise"], f["measure"]


def _estimate(f: Mapping[str, Any]) -> Estimate:
    return Estimate(f["value"], f["low"], f["high"], f["n"], f.get("left_out", 0))


def _differences(result: Mapping[str, Any]) -> Grid | None:
    rows = [
        (
            row["label"],
            f"{f['dataset']} +{f['noise']}" if f["noise"] else f["dataset"],
            figure_label(f["measure"]),
            f"{number(f['value'], f['measure'], signed=True)} [{number(f['low'], f['measure'])}, {number(f['high'], f['measure'])}]",
            p_value(f["p_value"]),
            str(f["n"]),
        )
        for row in result["rows"]
        for f in row["differences"]
        if f["value"] is not None
    ]
    title = f"Differences from {result['compared_with']}, question by question; p is not adjusted"
    return (
        Grid(title, ("row", "data", "figure", "difference", "p", "n"), tuple(rows), words=3) if rows else None
    )


def _differs(result: Mapping[str, Any]) -> Grid | None:
    rows = tuple((d["what"], d["ours"], d["theirs"]) for d in result["differs"])
    return Grid("What differs", ("", "ours", "theirs"), rows, words=3) if rows else None


def _overlap(result: Mapping[str, Any]) -> Grid | None:
    names = ("both", "first only", "second only", "neither")
    rows = tuple(
        (
            f"{o['first']} and {o['second']}, {o['dataset']}, n = {o['n']}",
            *(f"{100 * o[n]:.1f} %" for n in names),
        )
        for o in result["overlap"]
    )
    return Grid("Overlap", ("", *names), rows, words=1) if rows else None


def _noise(result: Mapping[str, Any]) -> list[Markup]:
    """A chart for each data set and measure over the levels of noise, a line for each row."""
    found = {(f["dataset"], f["measure"]) for row in result["rows"] for f in row["figures"] if f["noise"]}
    charts = []
    for dataset, measure in sorted(found):
        label, unit = figure(measure)
        factor = 100.0 if unit == "%" else 1.0
        lines = []
        for row in result["rows"]:
            points = sorted(
                (f["noise"], f["value"], f["low"], f["high"])
                for f in row["figures"]
                if (f["dataset"], f["measure"]) == (dataset, measure) and None not in (f["low"], f["high"])
            )
            if points:
                levels, *ends = zip(*points, strict=True)
                lines.append(Line(row["label"], levels, *([factor * v for v in end] for end in ends)))
        charts.append(
            line_chart(f"{dataset}: {label}", unit, lines, "irrelevant passages added", smooth=False)
        )
    return charts


def _spread(result: Mapping[str, Any]) -> list[Markup]:
    """The distribution of each measure over questions, rows next to each other."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in result["rows"]:
        for s in row["spread"]:
            found.setdefault((s["dataset"], s["measure"]), {})[row["label"]] = s["values"]
    return [
        histogram(f"{dataset}: {figure(measure).label}{_one_of(result)}", figure(measure).unit, values)
        for (dataset, measure), values in found.items()
    ]


def _one_of(result: Mapping[str, Any]) -> str:
    """The end of a chart's title: curves and distributions are those of one seed."""
    return ", first seed" if len(result["seeds"]) > 1 else ""


def _curves(result: Mapping[str, Any]) -> list[Markup]:
    names = dict.fromkeys(name for row in result["rows"] for name in row["curves"])
    charts = []
    for name in names:
        drawn = {row["label"]: row["curves"][name] for row in result["rows"] if row["curves"].get(name)}
        lines = [Line(label, *zip(*points, strict=True)) for label, points in drawn.items()]
        charts.append(line_chart(f"{name}{_one_of(result)}", "value", lines))
    return charts
