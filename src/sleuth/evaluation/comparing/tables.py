"""Tables as text: one grid of cells for the terminal, Markdown and LaTeX. Cells are data, so each format escapes them.

The LaTeX needs booktabs and a Unicode input encoding, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sleuth.evaluation.comparing.comparison import MAIN, Column, Comparison, Part
from sleuth.evaluation.figures import figure, interval, number, p_value
from sleuth.evaluation.statistics import Estimate
from sleuth.text import counted

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of plain strings."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """As long as `headers`; an empty first cell belongs to the row above."""
    words: int = 2
    """How many of the first columns hold words; the others hold numbers."""


def grids(comparison: Comparison) -> list[Grid]:
    """The table of a comparison; then the main figures by data set, and by seed, where there are several."""
    found = [_overall(comparison)]
    if len(comparison.datasets) > 1:
        found.append(_by_dataset(comparison))
    if any(column.seeds for column in comparison.columns):
        found.append(_by_seed(comparison))
    return found


def _overall(comparison: Comparison) -> Grid:
    columns = comparison.columns
    heads = _heads(len(columns), adjusted=len(columns) > 2)
    rows = [
        (label, column.name, *_cells(_part(column), name, heads))
        for name in columns[0].figures
        for label, column in zip(_labels(_titled(name), len(columns)), columns, strict=True)
    ]
    what = counted(len(comparison.names), "evaluation")
    title = f"{what} on {counted(comparison.n, 'question')}"
    return Grid(title, ("figure", "system", *heads), tuple(rows))


def _by_dataset(comparison: Comparison) -> Grid:
    columns = comparison.columns
    heads = _heads(len(columns), adjusted=True)
    rows = [
        (label, column.name, *_cells(column.by_dataset[dataset], name, heads))
        for dataset in comparison.datasets
        for name in MAIN
        if name in columns[0].figures
        for label, column in zip(
            _labels(f"{dataset or 'unnamed'}: {_titled(name)}", len(columns)), columns, strict=True
        )
    ]
    return Grid("By data set", ("figure", "system", *heads), tuple(rows))


def _by_seed(comparison: Comparison) -> Grid:
    rows = []
    for name in MAIN:
        for column in comparison.columns:
            if name not in column.seeds:
                continue
            report = column.seeds[name]
            each = ", ".join(
                f"{number(mean, name)} (seed {seed})"
                for seed, mean in zip(column.seed_numbers, report.per_seed, strict=False)
            )
            rows.append(
                (
                    _titled(name),
                    column.name,
                    _estimate(report.questions, name),
                    each,
                    number(report.seed_sd, name),
                )
            )
    headers = ("figure", "system", "mean [over questions]", "each seed", "sd over seeds")
    return Grid("By seed", headers, tuple(rows))


def _part(column: Column) -> Part:
    return Part(column.figures, column.differences, column.adjusted)


def _titled(name: str) -> str:
    return f"{figure(name).label} ({figure(name).unit})"


def _labels(label: str, count: int) -> list[str]:
    """The label once, then blanks."""
    return [label, *[""] * (count - 1)]


def _heads(count: int, *, adjusted: bool) -> tuple[str, ...]:
    """Heads of the number columns of `count` systems; Holm's only where there is more than one test."""
    if count == 1:
        return "value", "n"
    return ("value", "n", "difference", "p", "p (Holm)") if adjusted else ("value", "n", "difference", "p")


def _cells(part: Part, name: str, heads: Sequence[str]) -> tuple[str, ...]:
    """The cells under `heads`; a baseline's differences are blank."""
    estimate = part.figures.get(name, Estimate(None, None, None, 0))
    cells = [_estimate(estimate, name), str(estimate.n)]
    if (difference := part.differences.get(name)) is not None:
        change = f"{number(difference.value, name, signed=True)} {interval(difference, name)}".strip()
        cells += [change, p_value(difference.p_value), p_value(part.adjusted.get(name))]
    return tuple([*cells, "", "", ""][: len(heads)])


def _estimate(estimate: Estimate, name: str) -> str:
    return f"{number(estimate.value, name)} {interval(estimate, name)}".strip()


def terminal(grid: Grid) -> Table:
    """A rich table; nothing in a cell is taken as markup."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(grid.title), title_justify="left")
    for index, header in enumerate(grid.headers):
        table.add_column(header, justify="left" if index < grid.words else "right", no_wrap=index == 0)
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


_MARKDOWN = {character: f"\\{character}" for character in "\\`*_[]<>|#~$"}


def _markdown_text(text: str) -> str:
    """Text that GitHub's Markdown shows as it is, on one line."""
    return "".join(_MARKDOWN.get(character, character) for character in " ".join(text.split()))


def markdown(found: Sequence[Grid], stamps: Sequence[str], notes: Sequence[str]) -> str:
    """Tables between stamps and notes."""
    parts = [f"> **{_markdown_text(stamp)}**\n" for stamp in stamps]
    for index, grid in enumerate(found):
        if index:
            parts.append(f"**{_markdown_text(grid.title)}**\n")
        marks = ["---" if i < grid.words else "---:" for i in range(len(grid.headers))]
        lines = [grid.headers, marks, *grid.rows]
        cells = [[_markdown_text(cell) if line is not marks else cell for cell in line] for line in lines]
        parts.append("".join(f"| {' | '.join(line)} |\n" for line in cells))
    parts.append("".join(f"- {_markdown_text(note)}\n" for note in notes))
    return "\n".join(parts)


# Brackets are braced: after "\\" LaTeX takes "[" for the start of a length.
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "±": r"$\pm$",
    "×": r"$\times$",
}


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is, on one line; what no font has (control characters) is left out."""
    line = " ".join(text.split())
    return "".join(_LATEX.get(character, character) for character in line if character.isprintable())


def latex(found: Sequence[Grid], stamps: Sequence[str], notes: Sequence[str]) -> str:
    """A table environment with one booktabs tabular a grid; stamps above it, notes below."""
    parts = ["% needs \\usepackage{booktabs}", r"\begin{table}[t]", r"\centering\small"]
    parts += [rf"\textbf{{{latex_text(stamp)}}}\par\medskip" for stamp in stamps]
    for index, grid in enumerate(found):
        if index:
            parts.append(rf"\par\medskip {latex_text(grid.title)}\par\smallskip")
        parts += _tabular(grid)
    parts += [rf"\par\smallskip{{\footnotesize {latex_text('; '.join(notes))}.\par}}"] if notes else []
    return "\n".join([*parts, r"\end{table}", ""])


def _tabular(grid: Grid) -> list[str]:
    alignment = "".join("l" if i < grid.words else "r" for i in range(len(grid.headers)))
    lines = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", _latex_row(grid.headers), r"\midrule"]
    for index, row in enumerate(grid.rows):
        if index and row[0] and len({bool(other[0]) for other in grid.rows}) > 1:
            lines.append(r"\addlinespace")
        lines.append(_latex_row(row))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(latex_text, cells))} \\"
