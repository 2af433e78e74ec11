"""sleuth compare: finished evaluations on the questions they share, the first being the baseline."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import as_written, console, print_json, print_table, warn

if TYPE_CHECKING:
    from sleuth.evaluation.comparing.comparison import Comparison
    from sleuth.evaluation.comparing.tables import Grid


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="evaluations, or runs that hold one"
    )
    anyway = "compare even where settings that must agree differ; the table is stamped"
    parser.add_argument("--anyway", action="store_true", help=anyway)
    parser.add_argument(
        "--each-seed", action="store_true", help="a column for every run, not for every system"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report for the browser as well")
    formats = parser.add_mutually_exclusive_group()
    add_shared(formats, "--json")
    formats.add_argument("--markdown", action="store_true", help="print a Markdown table")
    formats.add_argument("--latex", action="store_true", help="print a LaTeX table (booktabs)")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.evaluation.comparing.compare import compare_entries
    from sleuth.evaluation.comparing.entries import find_evaluation, load_entries
    from sleuth.evaluation.comparing.systems import load_systems, outcome_grid
    from sleuth.evaluation.comparing.tables import grids, latex, markdown

    folders = [find_evaluation(run) for run in arguments.runs]
    for run, folder in zip(arguments.runs, folders, strict=True):
        if folder != run:
            warn(f"{run}: comparing its newest finished evaluation, {folder.name}")
    entries = load_entries(folders)
    comparison = compare_entries(entries, anyway=arguments.anyway, each_seed=arguments.each_seed)
    systems = load_systems(entries, comparison)
    if arguments.html is not None:
        from sleuth.evaluation.pages.comparison_page import write_comparison

        write_comparison(arguments.html, entries, comparison, systems)
        warn(f"report: {arguments.html}")
    if arguments.json:
        print_json(comparison.to_dict() | {"systems": {system.name: system.to_dict() for system in systems}})
        return 0
    tables = [*grids(comparison), outcome_grid(systems)]
    if arguments.markdown or arguments.latex:
        write = latex if arguments.latex else markdown
        sys.stdout.write(write(tables, comparison.stamps(), comparison.notes()))
    else:
        _print(comparison, tables)
    return 0


def _print(comparison: "Comparison", tables: Sequence["Grid"]) -> None:
    for stamp in comparison.stamps():
        console().print(as_written(stamp, "bold red"))
    for grid in tables:
        print_table(grid.headers, grid.rows, title=grid.title, words=grid.words)
    for note in comparison.notes():
        console().print(as_written(f"- {note}"))
