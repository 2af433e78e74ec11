"""The systems of a comparison with their episodes: what became of the questions, and what right answers cost.

Episodes are read one at a time and only what is counted stays, so that 10,000 of them fit anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sleuth.errors import DataError
from sleuth.evaluation.comparing.anatomy import Anatomy, dissect, outcomes
from sleuth.evaluation.comparing.compare import Entry, shared_keys
from sleuth.evaluation.comparing.comparison import Column, Comparison
from sleuth.evaluation.comparing.cost import Cost, cost_per_right
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.tables import Grid
from sleuth.evaluation.records import Key, Record
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.text import counted


@dataclass(frozen=True, slots=True)
class Member:
    """One evaluation of a system; a system with several seeds has several."""

    folder: Path
    records: Sequence[Record]
    """Of the shared questions, in the order of their keys."""
    anatomy: Mapping[Key, Anatomy]
    seconds: float
    """Of the whole evaluation."""
    n: int
    """Questions of the whole evaluation."""

    def values(self, name: str) -> list[float]:
        """A figure, where it exists."""
        return [value for record in self.records if (value := record.metrics.get(name)) is not None]

    def parts(self) -> list[Anatomy]:
        """The episodes of the shared questions, in their order."""
        return [self.anatomy[record.key] for record in self.records]

    def right(self) -> list[float]:
        """1.0 for each question that was answered rightly."""
        return [float(one.outcome == "right") for one in self.parts()]


System = tuple[Column, Sequence[Member]]
"""A column of the comparison and its evaluations."""


def systems_of(entries: Sequence[Entry], comparison: Comparison) -> list[System]:
    """The columns of a comparison of `entries` with all their episodes. Raises DataError if one cannot be read."""
    keys = shared_keys(entries)
    members = {}
    for entry in entries:
        folder = entry.evaluation.folder
        anatomy = dissect(folder)
        if missing := sum(key not in anatomy for key in keys):
            raise DataError(f"{folder / TRAJECTORIES}: {counted(missing, 'episode')} of {len(keys)} missing")
        members[str(folder)] = Member(
            folder=folder,
            records=[entry.table[key] for key in keys],
            anatomy=anatomy,
            seconds=entry.evaluation.seconds,
            n=entry.evaluation.n,
        )
    return [(column, [members[folder] for folder in column.folders]) for column in comparison.columns]


def outcome_counts(system: System) -> dict[str, int]:
    """How many questions ended in which of CLASSES, seeds counted together."""
    return outcomes([one for member in system[1] for one in member.parts()])


def outcome_grid(systems: Sequence[System]) -> Grid:
    """A row for every class that occurs, a column for every system."""
    counts = [outcome_counts(system) for system in systems]
    heads = [
        f"{column.name} (n = {sum(found.values())})"
        for (column, _), found in zip(systems, counts, strict=True)
    ]
    rows = [
        (
            kind.label,
            *(f"{found[name]} ({100 * found[name] / sum(found.values()):.1f} %)" for found in counts),
        )
        for name, kind in CLASSES.items()
        if any(found[name] for found in counts)
    ]
    return Grid("What became of the questions", ("outcome", *heads), tuple(rows), words=1)


def told_of(systems: Sequence[System]) -> dict[str, dict[str, Any]]:
    """System → outcomes and costs per right answer, as plain values."""
    return {
        system[0].name: {
            "outcomes": outcome_counts(system),
            "cost_per_right_answer": {name: asdict(cost) for name, cost in costs(system[1]).items()},
        }
        for system in systems
    }


COSTS = {
    "tokens": "tokens read and written",
    "response_tokens": "tokens written",
    "searches": "searches",
    "seconds": "seconds",
}
"""What a right answer may cost → its unit."""


def costs(members: Sequence[Member]) -> dict[str, Cost]:
    """Each cost per right answer; seeds are averaged question by question."""
    right = _mean([member.right() for member in members])
    spent: dict[str, list[float | None]] = {
        "tokens": _known([[one.tokens for one in member.parts()] for member in members]),
        **{
            name: _known([[record.metrics.get(name) for record in member.records] for member in members])
            for name in ("response_tokens", "searches")
        },
        # The clock ran for the evaluation as a whole: every question is given an equal share.
        "seconds": [sum(m.seconds / m.n for m in members) / len(members)] * len(right),
    }
    return {name: cost_per_right(spent[name], [value or 0.0 for value in right]) for name in COSTS}


def _mean(runs: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(column) for column in zip(*runs, strict=True)]


def _known(runs: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Means over seeds; None where a seed does not know."""
    means: list[float | None] = []
    for column in zip(*runs, strict=True):
        known = [value for value in column if value is not None]
        means.append(sum(known) / len(known) if len(known) == len(column) else None)
    return means
