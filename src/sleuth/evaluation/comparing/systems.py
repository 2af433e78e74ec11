"""Systems: the columns of a comparison with their episodes, for outcome counts, costs and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sleuth.errors import DataError
from sleuth.evaluation.comparing.comparison import Column, Comparison
from sleuth.evaluation.comparing.costs import Cost, cost_per_right
from sleuth.evaluation.comparing.entries import Entry, shared_keys
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.outcomes import Outcome, read_outcomes
from sleuth.evaluation.comparing.seeds import seed_means
from sleuth.evaluation.comparing.tables import Grid
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.text import counted

COSTS = {
    "tokens": "tokens read and written",
    "response_tokens": "tokens written",
    "searches": "searches",
    "seconds": "seconds",
}
"""Costs of a right answer → their units."""


@dataclass(frozen=True, slots=True)
class Episodes:
    """Episodes of one evaluation on the shared questions."""

    entry: Entry
    outcomes: Mapping[Key, Outcome]
    """By question, in the order of the keys."""

    @property
    def folder(self) -> Path:
        """The evaluation's folder."""
        return self.entry.evaluation.folder

    def values(self, name: str) -> list[float | None]:
        """A figure or a cost on each question, in order."""
        if name == "tokens":
            return [outcome.tokens for outcome in self.outcomes.values()]
        if name == "seconds":
            # Only the evaluation as a whole was timed: every question has an equal share.
            return [self.entry.evaluation.seconds / self.entry.evaluation.n] * len(self.outcomes)
        return self.entry.values(name, list(self.outcomes))


@dataclass(frozen=True, slots=True)
class System:
    """A column of the comparison and its evaluations: one, or one for each seed."""

    column: Column
    runs: Sequence[Episodes]

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    def counts(self) -> Counter[str]:
        """How many episodes had which outcome, all seeds together."""
        return Counter(outcome.name for run in self.runs for outcome in run.outcomes.values())

    def costs(self) -> dict[str, Cost]:
        """Each cost per right answer; seeds are averaged question by question."""
        right = seed_means(
            [[float(one.name == "right") for one in run.outcomes.values()] for run in self.runs]
        )
        return {
            name: cost_per_right(
                seed_means([run.values(name) for run in self.runs]), [value or 0.0 for value in right]
            )
            for name in COSTS
        }

    def to_dict(self) -> dict[str, Any]:
        """Outcomes and costs as plain values, for JSON."""
        counts = self.counts()
        return {
            "outcomes": {name: counts[name] for name in CLASSES},
            "cost_per_right_answer": {name: asdict(cost) for name, cost in self.costs().items()},
        }


def load_systems(entries: Sequence[Entry], comparison: Comparison) -> list[System]:
    """The columns of a comparison of `entries` with their episodes. Raises DataError if one is missing."""
    keys, runs = shared_keys(entries), {}
    for entry in entries:
        folder = entry.evaluation.folder
        outcomes = read_outcomes(folder)
        if missing := sum(key not in outcomes for key in keys):
            raise DataError(f"{folder / TRAJECTORIES}: {counted(missing, 'episode')} of {len(keys)} missing")
        runs[str(folder)] = Episodes(entry, {key: outcomes[key] for key in keys})
    return [System(column, [runs[folder] for folder in column.folders]) for column in comparison.columns]


def outcome_grid(systems: Sequence[System]) -> Grid:
    """A row for every outcome that occurs, a column for every system."""
    counts = {f"{system.name} (n = {system.counts().total()})": system.counts() for system in systems}
    rows = [
        (
            kind.label,
            *(f"{found[name]} ({100 * found[name] / found.total():.1f} %)" for found in counts.values()),
        )
        for name, kind in CLASSES.items()
        if any(found[name] for found in counts.values())
    ]
    return Grid("Outcomes", ("outcome", *counts), tuple(rows), words=1)
