"""Tables: grids of text cells, and their Markdown and LaTeX, which escape every cell.

The LaTeX needs booktabs and a Unicode input encoding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sleuth.evaluation.comparing.comparison import MAIN, Comparison, Part
from sleuth.evaluation.figures import figure, interval, number, p_value
from sleuth.evaluation.statistics import Estimate
from sleuth.text import counted


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of plain strings."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # As long as `headers`; an empty first cell repeats the one above.
    words: int = 2  # Number of first columns that hold words; the others hold numbers.


def grids(comparison: Comparison) -> list[Grid]:
    """The table of a comparison; then the main figures by data set and by seed, if there are several."""
    columns = comparison.columns
    what = counted(len(comparison.names), "evaluation")
    title = f"{what} on {counted(comparison.n, 'question')}"
    found = [figure_grid(title, comparison, list(columns[0].figures))]
    if len(comparison.datasets) > 1:
        parts = {
            f"{dataset or 'unnamed'}: {figure_label(name)}": [(c.by_dataset[dataset], name) for c in columns]
            for dataset in comparison.datasets
            for name in MAIN
            if name in columns[0].figures
        }
        found.append(_grid("By data set", comparison, parts, adjusted=True))
    if any(column.seeds for column in columns):
        found.append(_by_seed(comparison))
    return found


def figure_grid(title: str, comparison: Comparison, names: Sequence[str]) -> Grid:
    """Some figures of a comparison: a row for each figure and system."""
    parts = {figure_label(name): [(column, name) for column in comparison.columns] for name in names}
    return _grid(title, comparison, parts, adjusted=len(comparison.columns) > 2)


def figure_label(name: str) -> str:
    """A figure's label and unit."""
    return f"{figure(name).label} ({figure(name).unit})"


def _grid(
    title: str, comparison: Comparison, parts: Mapping[str, Sequence[tuple[Part, str]]], *, adjusted: bool
) -> Grid:
    heads = ("value", "n", "difference", "p", "p (Holm)")
    shown = 2 if len(comparison.columns) == 1 else 5 if adjusted else 4
    rows = [
        ("" if place else label, column.name, *_cells(part, name)[:shown])
        for label, systems in parts.items()
        for place, (column, (part, name)) in enumerate(zip(comparison.columns, systems, strict=True))
    ]
    return Grid(title, ("figure", "system", *heads[:shown]), tuple(rows))


def _cells(part: Part, name: str) -> tuple[str, ...]:
    estimate = part.figures.get(name)
    value, n = cell(estimate, name), str(estimate.n if estimate else 0)
    if (difference := part.differences.get(name)) is None:
        return value, n, "", "", ""
    change = f"{number(difference.value, name, signed=True)} {interval(difference, name)}".strip()
    return value, n, change, p_value(difference.p_value), p_value(part.adjusted.get(name))


def _by_seed(comparison: Comparison) -> Grid:
    rows = []
    for name, column in product(MAIN, comparison.columns):
        if report := column.seeds.get(name):
            seeds = zip(report.per_seed, column.seed_numbers, strict=False)
            each = ", ".join(f"{number(mean, name)} (seed {seed})" for mean, seed in seeds)
            mean, spread = cell(report.questions, name), number(report.seed_sd, name)
            rows.append((figure_label(name), column.name, mean, each, spread))
    headers = ("figure", "system", "mean over seeds [over questions]", "each seed", "sd over seeds")
    return Grid("By seed", headers, tuple(rows))


def cell(estimate: Estimate | None, name: str) -> str:
    """A figure's value and interval."""
    if estimate is None:
        return number(None, name)
    return f"{number(estimate.value, name)} {interval(estimate, name)}".strip()


_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#~$"})


def _markdown_text(text: str) -> str:
    return " ".join(text.split()).translate(_MARKDOWN)


def markdown(found: Sequence[Grid], stamps: Sequence[str], notes: Sequence[str]) -> str:
    """Tables in Markdown, stamps before them and notes after."""
    parts = [f"> **{_markdown_text(stamp)}**\n" for stamp in stamps]
    for index, grid in enumerate(found):
        if index:
            parts.append(f"**{_markdown_text(grid.title)}**\n")
        marks = ["---" if i < grid.words else "---:" for i in range(len(grid.headers))]
        head, *rows = ([_markdown_text(cell) for cell in row] for row in (grid.headers, *grid.rows))
        parts.append("".join(f"| {' | '.join(row)} |\n" for row in (head, marks, *rows)))
    parts.append("".join(f"- {_markdown_text(note)}\n" for note in notes))
    return "\n".join(parts)


_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    # Brackets are braced: LaTeX reads "[" after "\\" as the start of a length.
    | {"[": "{[}", "]": "{]}", "−": "$-$", "–": "--", "…": r"\dots{}", "±": r"$\pm$", "×": r"$\times$"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}"}
)


def latex_text(text: str) -> str:
    """Text on one line, escaped for LaTeX, without control characters."""
    return "".join(filter(str.isprintable, " ".join(text.split()))).translate(_LATEX)


def latex(found: Sequence[Grid], stamps: Sequence[str], notes: Sequence[str]) -> str:
    """A table environment with one booktabs tabular for each grid, stamps above and notes below."""
    parts = ["% needs \\usepackage{booktabs}", r"\begin{table}[t]", r"\centering\small"]
    parts += [rf"\textbf{{{latex_text(stamp)}}}\par\medskip" for stamp in stamps]
    for index, grid in enumerate(found):
        if index:
            parts.append(rf"\par\medskip {latex_text(grid.title)}\par\smallskip")
        parts += _tabular(grid)
    if notes:
        parts.append(rf"\par\smallskip{{\footnotesize {latex_text('; '.join(notes))}.\par}}")
    return "\n".join([*parts, r"\end{table}", ""])


def _tabular(grid: Grid) -> list[str]:
    alignment = "".join("l" if i < grid.words else "r" for i in range(len(grid.headers)))
    head, *rows = (rf"{' & '.join(map(latex_text, row))} \\" for row in (grid.headers, *grid.rows))
    lines = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule"]
    is_grouped = not all(row[0] for row in grid.rows)
    for index, (row, line) in enumerate(zip(grid.rows, rows, strict=True)):
        lines += [r"\addlinespace", line] if is_grouped and index and row[0] else [line]
    return [*lines, r"\bottomrule", r"\end{tabular}"]
