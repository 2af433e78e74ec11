"""sleuth index: passages from files, folders or a data set into a searchable directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.output import print_json, warn
from sleuth.errors import DataError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SRC",
        help="a .jsonl corpus, a folder of .md/.txt/.html/.pdf files, a DPR .tsv, or 'factbook'",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the index goes"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first unusable record")
    parser.add_argument("--json", action="store_true", help="machine-readable summary")


def run(arguments: argparse.Namespace) -> int:
    """Build the index; nothing is published if it fails."""
    from itertools import chain

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from sleuth.corpora import open_corpora
    from sleuth.retrievers.build import build_index

    skipped = 0

    def report(line: str) -> None:
        nonlocal skipped
        if arguments.strict:
            raise DataError(line)
        skipped += 1
        if skipped <= 10:
            warn(f"skipped {line}")

    corpora = open_corpora(arguments.sources)
    columns = (TextColumn("{task.completed:,} passages"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=arguments.json, transient=True) as progress:
        task = progress.add_task("index", total=None)
        info = build_index(
            chain.from_iterable(corpus.passages(report) for corpus in corpora),
            arguments.output,
            progress=lambda count: progress.update(task, completed=count),
        )
    if skipped > 10:
        warn(f"skipped {skipped} records in all")
    if info.num_duplicates:
        named = ", ".join(info.duplicates)
        warn(f"{info.num_duplicates} passages left out, since an earlier one has their id: {named}")
    skipped += info.num_duplicates
    summary = {"index": str(arguments.output), "passages": info.num_passages, "skipped": skipped}
    if arguments.json:
        print_json(summary)
    else:
        print(f"{info.num_passages:,} passages indexed in {arguments.output} ({skipped} records skipped)")
        print(f'try: sleuth search {arguments.output} "your words"')
    return 0
