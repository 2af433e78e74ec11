"""Output of the verbs: JSON for programs, rich tables for people."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from sleuth.evaluation.statistics import Estimate


def print_json(value: Any) -> None:
    """One JSON document on standard output, indented, with a final newline."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")  # All but tabs and line ends.
PIPE_WIDTH = 200  # Columns of a table that is not printed on a terminal.
WIDE = 110  # Columns from which a figure and its interval fit on one line.


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str | Text]], title: str = "", words: int | None = None
) -> None:
    """A table no wider than the terminal; its first column is never cut. After `words` columns, numbers are aligned."""
    table = Table(title=as_written(title) if title else None, title_justify="left")
    for index, header in enumerate(headers):
        is_number = words is not None and index >= words
        table.add_column(as_written(header), justify="right" if is_number else "left", no_wrap=index == 0)
    for row in rows:
        table.add_row(*(as_written(cell) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


def as_written(text: str, style: str = "") -> Text:
    """Plain text for a terminal: no markup, no emoji names, and no control characters."""
    return Text(_CONTROL.sub("", text), style)


def console() -> Console:
    """Standard output as a rich console."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def warn(line: str) -> None:
    """Print a line on standard error, so that standard output stays parseable."""
    print(f"sleuth: {line}", file=sys.stderr)


def print_figures(title: str, rows: Sequence[tuple[str, "Mapping[str, Estimate]"]]) -> None:
    """Headline figures with 95 % intervals, one row a system."""
    from sleuth.evaluation.figures import HEADLINE, figure, interval, number

    between = " " if console().width >= WIDE else "\n"
    headers = ["", *(f"{figure(name).label} ({figure(name).unit})" for name in HEADLINE), "n"]
    lines = []
    for name, metrics in rows:
        cells = [f"{number(metrics[m].value, m)}{between}{interval(metrics[m], m)}" for m in HEADLINE]
        lines.append([name, *cells, str(metrics["em"].n)])
    print_table(headers, lines, title=title)
