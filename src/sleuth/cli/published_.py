"""sleuth published: the papers' result tables, and a run of ours beside them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sleuth.evaluation.published import Beside, PublishedFigure


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--dataset", default="", metavar="NAME", help="only this data set, such as hotpotqa")
    parser.add_argument("--method", default="", metavar="NAME", help="only methods whose name holds this")
    parser.add_argument(
        "--beside", type=Path, metavar="RUN", help="set a finished evaluation folder beside them"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(arguments: argparse.Namespace) -> int:
    """Print the figures, or ours among them with what differs."""
    from sleuth.evaluation.published import beside, published
    from sleuth.evaluation.result import load_evaluation

    figures = published(arguments.dataset, arguments.method)
    if arguments.beside is None:
        if arguments.json:
            print_json(figures)
        else:
            _print_figures(figures)
        return 0
    found = beside(load_evaluation(arguments.beside), figures)
    if arguments.json:
        print_json({"folder": str(arguments.beside), "figures": found})
        return 0
    for one in found:
        _print_beside(one, str(arguments.beside))
    return 0


def _print_figures(figures: Sequence[PublishedFigure]) -> None:
    """One table a data set; a row is a method in one published table, a column one of its metrics."""
    for dataset in dict.fromkeys(figure.dataset for figure in figures):
        here = [figure for figure in figures if figure.dataset == dataset]
        metrics = list(dict.fromkeys(figure.metric for figure in here))
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for figure in here:
            key = (figure.method, figure.model, _questions(figure), f"{figure.source}, {figure.table}")
            cells.setdefault(key, {})[figure.metric] = _exact(figure)
        rows = [
            [key[0], *(values.get(metric, "–") for metric in metrics), *key[1:]]
            for key, values in cells.items()
        ]
        names = [_label(metric) for metric in metrics]
        print_table(["method", *names, "model", "questions", "source"], rows, title=dataset)


def _print_beside(one: Beside, folder: str) -> None:
    """Our figure first, then the published ones, then table by table what differs."""
    from sleuth.evaluation.figures import interval, number

    low_to_high = interval(one.ours, one.metric)
    rows = [[folder, f"{number(one.ours.value, one.metric)} {low_to_high}", one.model, "this evaluation"]]
    rows += [
        [figure.method, _exact(figure), figure.model, f"{figure.source}, {figure.table}"]
        for figure in one.published
    ]
    title = f"{one.dataset}: {_label(one.metric)}, n = {one.ours.n}"
    print_table(["method", _label(one.metric), "model", "source"], rows, title=title)
    lines = [
        [name, contrast.what, contrast.ours, contrast.theirs]
        for name, contrasts in one.contrasts.items()
        for contrast in contrasts
    ]
    print_table(["table", "differs in", "ours", "theirs"], lines)
    for name, note in one.notes.items():
        print(f"{name}: {note}")
    print()


def _label(metric: str) -> str:
    """The metric with its unit."""
    from sleuth.evaluation.figures import figure

    named = figure(metric)
    return f"{named.label} ({named.unit})"


def _questions(figure: PublishedFigure) -> str:
    return figure.split if figure.n is None else f"{figure.split} ({figure.n})"


def _exact(figure: PublishedFigure) -> str:
    """With all the digits that were printed; shares in percent."""
    from sleuth.evaluation.published import SHARES

    return f"{100 * figure.value if figure.metric in SHARES else figure.value:.6g}"
