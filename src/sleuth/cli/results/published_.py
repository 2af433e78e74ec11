"""sleuth published: the papers' result tables, and a run of ours among them."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sleuth.evaluation.published import Placement, PublishedFigure


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", default="", metavar="NAME", help="only this data set, such as hotpotqa")
    parser.add_argument("--method", default="", metavar="NAME", help="only methods whose name contains this")
    parser.add_argument("--run", type=Path, metavar="RUN", help="place a finished evaluation among them")
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.evaluation.published import place, published
    from sleuth.evaluation.result import load_evaluation

    figures = published(arguments.dataset, arguments.method)
    found = place(load_evaluation(arguments.run), figures) if arguments.run else []
    if arguments.json:
        print_json({"folder": str(arguments.run), "figures": found} if arguments.run else figures)
    elif arguments.run:
        for one in found:
            _print_placement(one, str(arguments.run))
    else:
        _print_figures(figures)
    return 0


def _print_figures(figures: Sequence["PublishedFigure"]) -> None:
    from sleuth.evaluation.comparing.tables import figure_label
    from sleuth.evaluation.published import COUNTS

    # Counts and costs have tables of their own: few systems have any.
    kinds = dict.fromkeys((figure.dataset, figure.metric in COUNTS) for figure in figures)
    for dataset, is_count in sorted(kinds, key=lambda kind: kind[1]):
        here = [f for f in figures if f.dataset == dataset and (f.metric in COUNTS) is is_count]
        metrics = list(dict.fromkeys(figure.metric for figure in here))
        cells: dict[tuple[str, ...], dict[str, str]] = {}
        for figure in here:
            questions = figure.split if figure.n is None else f"{figure.split} ({figure.n})"
            key = (figure.method, figure.model, questions, figure.place)
            cells.setdefault(key, {})[figure.metric] = _exact(figure)
        rows = [[key[0], *(each.get(m, "–") for m in metrics), *key[1:]] for key, each in cells.items()]
        print_table(
            ["method", *map(figure_label, metrics), "model", "questions", "source"], rows, title=dataset
        )


def _print_placement(one: "Placement", folder: str) -> None:
    from sleuth.evaluation.comparing.tables import cell, figure_label

    ours, label = cell(one.ours, one.metric), figure_label(one.metric)
    rows = [[folder, ours, one.model, "this evaluation"]]
    rows += [[figure.method, _exact(figure), figure.model, figure.place] for figure in one.published]
    title = f"{one.dataset}: {label}, n = {one.ours.n}"
    print_table(["method", label, "model", "source"], rows, title=title)
    lines = [[place, name, *both] for place, found in one.contrasts.items() for name, both in found.items()]
    print_table(["table", "differs in", "ours", "theirs"], lines)
    for place, note in one.notes.items():
        print(f"{place}: {note}")
    print()


def _exact(figure: "PublishedFigure") -> str:
    from sleuth.evaluation.published import SHARES

    return f"{100 * figure.value if figure.metric in SHARES else figure.value:.6g}"
