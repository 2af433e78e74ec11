"""How verbs speak: JSON for programs, rich tables for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from sleuth.evaluation.statistics import Estimate


def print_json(value: Any) -> None:
    """One JSON document on standard output, indented, with a final newline."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def print_json_line(value: Any) -> None:
    """One JSON object on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table as wide as the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*headers, title=title or None, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def warn(line: str) -> None:
    """A remark on standard error, so that standard output stays parseable."""
    print(f"sleuth: {line}", file=sys.stderr)


def print_figures(title: str, rows: Sequence[tuple[str, Mapping[str, Estimate]]]) -> None:
    """Headline figures with 95 % intervals, one row a system."""
    from sleuth.evaluation.figures import figure, interval, number
    from sleuth.evaluation.report import HEADLINE

    headers = ["", *(f"{figure(name).label} ({figure(name).unit})" for name in HEADLINE), "n"]
    lines = []
    for name, metrics in rows:
        cells = [f"{number(metrics[m].value, m)} {interval(metrics[m], m)}" for m in HEADLINE]
        lines.append([name, *cells, str(metrics["em"].n)])
    print_table(headers, lines, title=title)
