"""write_comparison: a comparison as one HTML file: scores, errors, costs, distributions, curves, episodes.

Loads nothing, runs nothing, escapes everything, like every page of sleuth.evaluation.pages.report. Episodes are
read one at a time, and how many are shown is bounded, so that the page of 10,000 questions stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from sleuth.evaluation.comparing.compare import Entry, shared_keys
from sleuth.evaluation.comparing.comparison import MAIN, Comparison
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.systems import COSTS, System, costs, outcome_grid
from sleuth.evaluation.comparing.tables import Grid, grids
from sleuth.evaluation.pages import comparison_charts as charts
from sleuth.evaluation.pages.bars import tail
from sleuth.evaluation.pages.comparison_charts import SPREADS
from sleuth.evaluation.pages.curves import curves, overlaid
from sleuth.evaluation.pages.report import LEGEND, notes_html, write_page
from sleuth.evaluation.pages.side_by_side import Side, disagreeing, examples, questions_html
from sleuth.evaluation.records import Key
from sleuth.evaluation.settings import differing
from sleuth.text import counted


def write_comparison(
    path: Path, entries: Sequence[Entry], comparison: Comparison, systems: Sequence[System]
) -> None:
    """Write the report of a comparison of `entries`; `systems` are those of systems_of."""
    keys = shared_keys(entries)
    title = (
        f"{counted(len(comparison.names), 'evaluation')} on {counted(comparison.n, 'question')}"
        if len(comparison.names) > 1
        else f"{comparison.names[0]} on {counted(comparison.n, 'question')}"
    )
    sections = [
        _stamps(comparison.stamps()),
        _scores(comparison),
        notes_html(comparison.notes()),
        *_tables(comparison),
        _errors(systems),
        _costs(systems),
        _spreads(systems),
        _selective(systems),
        _curves(entries),
        _episodes(systems, keys),
        _settings(entries),
    ]
    write_page(path, title, sections)


def _stamps(stamps: Sequence[str]) -> str:
    items = "".join(f"<p>{escape(stamp)}</p>" for stamp in stamps)
    return f'<div class="stamp" role="alert">{items}</div>' if items else ""


def _scores(comparison: Comparison) -> str:
    drawn = "".join(charts.scores(comparison.columns, name) for name in MAIN)
    nothing = '<p class="hint">No question here has a gold answer, so there is no EM and no F1.</p>'
    return f'<div class="charts wide">{drawn}</div>' if drawn else nothing


def _tables(comparison: Comparison) -> list[str]:
    """The main figures in sight, all of them folded away, then data sets and seeds."""
    overall, *others = grids(comparison)
    per = len(comparison.columns)
    main = [name for name in comparison.columns[0].figures if name in (*MAIN, "valid_format", "searches")]
    rows = [
        row
        for place, name in enumerate(comparison.columns[0].figures)
        if name in main
        for row in overall.rows[place * per : (place + 1) * per]
    ]
    shown = [grid_html(Grid("Scores", overall.headers, tuple(rows)))] if rows else []
    folded = (
        f'<details class="more"><summary>all figures</summary>{grid_html(overall, title=False)}</details>'
    )
    return [*shown, folded, *(grid_html(grid) for grid in others)]


def grid_html(grid: Grid, *, title: bool = True) -> str:
    """A table; on a phone each row becomes a block with its heads beside the values."""
    heads = "".join(
        f'<th class="{_cell_class(grid, place, head)}">{escape(head)}</th>'
        for place, head in enumerate(grid.headers)
    )
    lines, first = [], ""
    for row in grid.rows:
        first = row[0] or first
        cells = "".join(
            f'<td data-label="{escape(head, quote=True)}" class="{_cell_class(grid, place, cell)}">'
            f"<span>{_number_cell(cell) if place >= grid.words else escape(cell)}</span></td>"
            for place, (head, cell) in enumerate(zip(grid.headers, row, strict=True))
            if place
        )
        repeated = "" if row[0] else ' class="again"'
        lines.append(f'<tr{repeated}><th scope="row"><span>{escape(first)}</span></th>{cells}</tr>')
    heading = f"<h2>{escape(grid.title)}</h2>" if title else ""
    return (
        f'{heading}<div class="card scroll grid"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell_class(grid: Grid, place: int, cell: str) -> str:
    """How a cell is set: words to the left; a system's name needs no head beside it."""
    if not cell:
        return "none"
    if place >= grid.words:
        return "number"
    return "name" if grid.headers[place] == "system" else "word"


def _number_cell(cell: str) -> str:
    value, bracket, rest = cell.partition(" [")
    return f'{escape(value)} <span class="interval">{escape(f"[{rest}")}</span>' if bracket else escape(cell)


def _errors(systems: Sequence[System]) -> str:
    """How many questions of each system ended in which class; seeds are counted together."""
    table = grid_html(outcome_grid(systems))
    definitions = "".join(
        f"<li><b>{escape(kind.label)}</b>: {escape(kind.definition)}.</li>" for kind in CLASSES.values()
    )
    return (
        f'{table}<details class="more"><summary>how they are sorted</summary><p class="hint">The first that applies '
        f'counts.</p><ol class="notes hint">{definitions}</ol></details>'
    )


def _costs(systems: Sequence[System]) -> str:
    found = {column.name: costs(members) for column, members in systems}
    drawn = "".join(
        charts.cost_chart(name, {system: each[name] for system, each in found.items()}) for name in COSTS
    )
    without = [name for name, each in found.items() if each["seconds"].value is None]
    rows = tuple(
        (system, *(charts.cost_text(each[name]) for name in COSTS), str(each["seconds"].n))
        for system, each in found.items()
    )
    table = grid_html(Grid("", ("system", *COSTS.values(), "n"), rows, words=1), title=False)
    notes = [
        "All that was spent on all questions, over the number of right answers. Seconds are those of each "
        "evaluation on its own machine, episodes side by side."
    ]
    if without:
        notes.append(f"No right answer, so no cost of one: {', '.join(without)}.")
    return (
        f'<h2>Cost per right answer</h2><div class="charts">{drawn}</div><div class="gap"></div>{table}'
        f'<p class="hint">{escape(" ".join(notes))}</p>'
    )


def _spreads(systems: Sequence[System]) -> str:
    drawn = "".join(charts.spread(systems, name) for name in SPREADS)
    hint = '<p class="hint">Whiskers: 95 % Wilson intervals, where there is room for them.</p>'
    return f'<h2>Lengths and steps</h2><div class="charts">{drawn}</div>{hint}' if drawn else ""


def _selective(systems: Sequence[System]) -> str:
    drawn = charts.risk_over_coverage(systems)
    hint = (
        '<p class="hint">Confidence: mean log-probability of the answer\'s own tokens. Bands: 95 % Wilson intervals. '
        "Questions without an answer count as wrong and least sure. Less area under the curve (AURC) is better.</p>"
    )
    return f'<h2>Answering only when sure</h2><div class="charts wide">{drawn}</div>{hint}' if drawn else ""


def _curves(entries: Sequence[Entry]) -> str:
    """Of each run once, however many of its evaluations are compared."""
    runs = {entry.run.folder: entry for entry in entries if entry.run.folder is not None}
    rows = {
        tail(folder.name if len({f.name for f in runs}) == len(runs) else str(folder)): entry.run.metrics()
        for folder, entry in runs.items()
    }
    rows = {name: found for name, found in rows.items() if found}
    return curves(next(iter(rows.values()))) if len(rows) == 1 else overlaid(rows)


def _episodes(systems: Sequence[System], keys: Sequence[Key]) -> str:
    """Questions on which the systems disagree, or examples of one system's outcomes."""
    sides = [Side(column.name, members[0].folder, members[0].anatomy) for column, members in systems]
    if len(sides) == 1:
        chosen, what = examples(sides[0], keys), "questions; each outcome in turns"
    else:
        chosen, what = disagreeing(sides, keys), "questions that some answer rightly and some do not"
    if not chosen:
        return "<h2>Side by side</h2><p>All of them are right on the same questions.</p>"
    cards, shown = questions_html(sides, chosen)
    seeds = " Of several seeds the first is shown." if any(len(members) > 1 for _, members in systems) else ""
    heading = "Episodes" if len(sides) == 1 else "Side by side"
    return (
        f'<h2>{heading}</h2><p class="hint">{shown} of {len(chosen)} {what}, drawn at random, the same each time.'
        f"{seeds}</p>{LEGEND}{cards}"
    )


def _settings(entries: Sequence[Entry]) -> str:
    """Everything a figure depends on, what differs first."""
    found = [_flat(_depends(entry)) for entry in entries]
    differ = dict.fromkeys(name for other in found[1:] for name in differing(found[0], other))
    names = [
        *differ,
        *(name for name in dict.fromkeys(n for one in found for n in one) if name not in differ),
    ]
    rows = tuple(
        (f"≠ {name}" if name in differ else name, *(one.get(name, "–") for one in found)) for name in names
    )
    grid = Grid("", ("setting", *(entry.name for entry in entries)), rows, words=len(entries) + 1)
    return (
        f'<h2>Settings</h2><details class="more"><summary>{len(differ)} of {len(names)} '
        f"settings differ, marked ≠</summary>{grid_html(grid, title=False)}</details>"
    )


def _depends(entry: Entry) -> dict[str, Any]:
    evaluation = entry.evaluation
    return {
        **evaluation.settings,
        "engine": evaluation.engine,
        "versions": evaluation.versions,
        "source": evaluation.source,
    }


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted name → value as text."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = "none" if value is None else str(value)
    return flat
