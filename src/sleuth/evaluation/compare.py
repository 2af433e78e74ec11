"""compare: finished evaluations side by side on the questions they share, differences tested in pairs.

The first evaluation is the baseline. Figures that differ in more than the system itself (data,
rules, decoding, retrieval, limits) are refused, or carry the list of what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.figures import figure, interval, number, p_value
from sleuth.evaluation.records import Key, Record
from sleuth.evaluation.result import Evaluation, Leaks, load_evaluation
from sleuth.evaluation.settings import differing
from sleuth.evaluation.statistics import Difference, Estimate, bootstrap_mean, paired_difference

if TYPE_CHECKING:
    from rich.table import Table

MUST_AGREE = ("dataset", "rules", "decoding", "retriever", "limits")
"""Settings without which two figures do not mean the same; model, protocol and reward are what is compared."""
MAY_DIFFER = ("model", "weights", "protocol", "reward")


@dataclass(frozen=True, slots=True)
class Column:
    """One evaluation, on the shared questions."""

    name: str
    folder: str
    model: str
    figures: Mapping[str, Estimate]
    differences: Mapping[str, Difference]
    """This minus the baseline; empty for the baseline."""
    only_here: int
    """Questions of this evaluation that some other lacks; they count nowhere in this comparison."""
    faults: int
    """Shared questions whose episode failed from outside, counted as wrong."""
    leaks: Leaks


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evaluations that were put side by side."""

    n: int
    """Shared questions."""
    columns: tuple[Column, ...]
    disagreeing: tuple[str, ...]
    """Settings that must agree and do not; not empty only if that was asked for."""
    compared: tuple[str, ...]
    """Settings that differ as they may: what is being compared."""
    versions: tuple[str, ...]
    """Packages whose versions differ."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(msgspec.to_builtins(self))

    def notes(self) -> list[str]:
        """What a reader of the table must know."""
        notes = [f"{self.n} questions in all of them; intervals are 95 %, p from paired sign flips"]
        if self.disagreeing:
            notes.append(f"NOT COMPARABLE: they differ in {', '.join(self.disagreeing)}")
        if self.compared:
            notes.append(f"compared: {', '.join(self.compared)}")
        if self.versions:
            notes.append(f"other versions of {', '.join(self.versions)}")
        for column in self.columns:
            if column.only_here:
                notes.append(f"{column.name}: {column.only_here} questions that others lack, left out")
            if column.faults:
                notes.append(f"{column.name}: {column.faults} episodes failed and count as wrong")
            if column.leaks.count:
                notes.append(
                    f"{column.name}: {column.leaks.count} questions were among the training questions"
                )
        return notes

    def table(self) -> Table:
        """A table for the terminal, notes below."""
        from rich.table import Table

        table = Table(caption="\n".join(self.notes()), caption_justify="left")
        table.add_column("figure")
        for column in self.columns:
            table.add_column(column.name, justify="right")
            if column.differences:
                table.add_column("difference", justify="right")
                table.add_column("p", justify="right")
        for name in self.columns[0].figures:
            row = [f"{figure(name).label} ({figure(name).unit})"]
            for column in self.columns:
                row += _cells(column, name)
            table.add_row(*row)
        return table


def _cells(column: Column, name: str) -> list[str]:
    estimate = column.figures[name]
    cells = [f"{number(estimate.value, name)} {interval(estimate, name)}".strip()]
    if difference := column.differences.get(name):
        cells.append(f"{number(difference.value, name, signed=True)} {interval(difference, name)}".strip())
        cells.append(p_value(difference.p_value))
    return cells


def compare(folders: Sequence[Path], *, anyway: bool = False) -> Comparison:
    """Compare two or more evaluation folders, the first being the baseline.

    Raises ConfigError if settings that must agree do not, unless `anyway`; DataError if a
    folder holds no finished evaluation, if no question is shared, or if the same id has
    another question or other golds.
    """
    if len(folders) < 2:
        raise ConfigError(f"a comparison needs at least two evaluations, not {len(folders)}")
    evaluations = [load_evaluation(folder) for folder in folders]
    disagreeing = _differences(evaluations, MUST_AGREE)
    if disagreeing and not anyway:
        raise ConfigError(
            f"not comparable, they differ in {', '.join(disagreeing)}; ask for it explicitly to see them anyway"
        )
    tables = [{record.key: record for record in evaluation.records()} for evaluation in evaluations]
    shared = _shared(tables, folders)
    names = _figures(tables, shared)
    return Comparison(
        n=len(shared),
        columns=tuple(
            _column(name, evaluation, table, tables[0], shared, names)
            for name, evaluation, table in zip(_names(folders), evaluations, tables, strict=True)
        ),
        disagreeing=disagreeing,
        compared=_differences(evaluations, MAY_DIFFER),
        versions=tuple(
            dict.fromkeys(k for e in evaluations[1:] for k in differing(evaluations[0].versions, e.versions))
        ),
    )


def _differences(evaluations: Sequence[Evaluation], names: Sequence[str]) -> tuple[str, ...]:
    """Dotted names of settings in which any evaluation differs from the first."""
    kept = [{name: evaluation.settings.get(name) for name in names} for evaluation in evaluations]
    return tuple(dict.fromkeys(name for other in kept[1:] for name in differing(kept[0], other)))


def _shared(tables: Sequence[Mapping[Key, Record]], folders: Sequence[Path]) -> list[Key]:
    """Sorted keys of the questions in every evaluation, which must really be the same questions."""
    shared = sorted(set(tables[0]).intersection(*tables[1:]))
    if not shared:
        raise DataError(f"{' and '.join(map(str, folders))} have no question in common")
    for key in shared:
        first = tables[0][key]
        for table, folder in zip(tables[1:], folders[1:], strict=True):
            other = table[key]
            if (first.question, sorted(first.golds)) != (other.question, sorted(other.golds)):
                raise DataError(
                    f"question {key[1]!r} has another text or other golds in {folder} than in {folders[0]}"
                )
    return shared


def _figures(tables: Sequence[Mapping[Key, Record]], shared: Sequence[Key]) -> list[str]:
    """Figures that every evaluation has for at least one shared question."""
    names = tables[0][shared[0]].metrics
    return [
        name
        for name in names
        if all(any(t[key].metrics.get(name) is not None for key in shared) for t in tables)
    ]


def _column(
    name: str,
    evaluation: Evaluation,
    table: Mapping[Key, Record],
    baseline: Mapping[Key, Record],
    shared: Sequence[Key],
    names: Sequence[str],
) -> Column:
    values = {figure: [table[key].metrics.get(figure) for key in shared] for figure in names}
    differences = {}
    if table is not baseline:
        for figure_name, column in values.items():
            reference = [baseline[key].metrics.get(figure_name) for key in shared]
            differences[figure_name] = paired_difference(reference, column)
    return Column(
        name=name,
        folder=str(evaluation.folder),
        model=str(evaluation.settings.get("model", "")),
        figures={figure: bootstrap_mean(column) for figure, column in values.items()},
        differences=differences,
        only_here=len(table) - len(shared),
        faults=sum(bool(table[key].fault) for key in shared),
        leaks=evaluation.leaks,
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest tails of the paths that tell the folders apart."""
    parts = [folder.resolve().parts for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    raise ConfigError(f"{folders[0]} is given more than once")
