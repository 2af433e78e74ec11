"""Systems: the columns of a comparison with their episodes, and the costs of a right answer.

A cost of a right answer is a ratio of sums over all questions: a mean of ratios does not exist if a question is
wrong. It is never infinite.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sleuth.errors import DataError
from sleuth.evaluation.comparing.comparison import Column, Comparison
from sleuth.evaluation.comparing.entries import Entry, shared_keys
from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.outcomes import Outcome
from sleuth.evaluation.comparing.tables import Grid
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.evaluation.statistics import ratio_interval, seed_means
from sleuth.text import counted

COSTS = {
    "tokens": "tokens read and written",
    "response_tokens": "tokens written",
    "searches": "searches",
    "seconds": "seconds",
}
"""Costs of a right answer → their units."""
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost per right answer and its 95 % percentile bootstrap interval over questions."""

    value: float | None  # None if nothing was answered rightly, or if the cost of a question is unknown.
    low: float | None
    """None without a value, below two questions, or if nearly all resamples lack a right answer."""
    high: float | None
    """None also if resamples without a right answer reach the upper tail: there is no upper bound."""
    n: int

    def __str__(self) -> str:
        """Value and interval in three significant digits."""
        if self.value is None:
            return "–"
        if self.low is None:
            return _amount(self.value)
        high = "no bound" if self.high is None else _amount(self.high)
        return f"{_amount(self.value)} [{_amount(self.low)}, {high}]"


def cost_per_right(costs: Sequence[float | None], right: Sequence[float]) -> Cost:
    """Σ costs / Σ right, questions resampled with their cost; `right` is 0 or 1, or a mean over seeds."""
    known = [cost for cost in costs if cost is not None]
    n, total = len(right), sum(right)
    if len(known) < n or not total:
        return Cost(None, None, None, n)
    value = sum(known) / total
    if n < 2:
        return Cost(value, None, None, n)
    return Cost(value, *ratio_interval(known, right, RESAMPLES), n)


def _amount(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


@dataclass(frozen=True, slots=True)
class System:
    """A column of the comparison, its evaluations (one, or one for each seed), and the shared questions."""

    column: Column
    runs: Sequence[Entry]
    keys: Sequence[Key]

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def outcomes(self) -> list[list[Outcome]]:
        """Outcomes on the shared questions, for each evaluation."""
        return [[run.outcomes[key] for key in self.keys] for run in self.runs]

    def counts(self) -> Counter[str]:
        """How many episodes had which outcome, all seeds together."""
        return Counter(one.name for outcomes in self.outcomes for one in outcomes)

    def costs(self) -> dict[str, Cost]:
        """Each cost per right answer; seeds are averaged question by question."""
        right = seed_means([[float(one.name == "right") for one in outcomes] for outcomes in self.outcomes])
        means = {name: seed_means([run.values(name, self.keys) for run in self.runs]) for name in COSTS}
        return {name: cost_per_right(each, [value or 0.0 for value in right]) for name, each in means.items()}

    def to_dict(self) -> dict[str, Any]:
        """Outcomes and costs as plain values, for JSON."""
        counts = self.counts()
        return {
            "outcomes": {name: counts[name] for name in CLASSES},
            "cost_per_right_answer": {name: asdict(cost) for name, cost in self.costs().items()},
        }


def load_systems(entries: Sequence[Entry], comparison: Comparison) -> list[System]:
    """The columns of a comparison of `entries` with their episodes. Raises DataError if one is missing."""
    keys, runs = shared_keys(entries), {str(entry.evaluation.folder): entry for entry in entries}
    for folder, entry in runs.items():
        if missing := sum(key not in entry.outcomes for key in keys):
            path = f"{folder}/{TRAJECTORIES}"
            raise DataError(f"{path}: {counted(missing, 'episode')} of {len(keys)} missing")
    return [System(column, [runs[name] for name in column.folders], keys) for column in comparison.columns]


def outcome_grid(systems: Sequence[System]) -> Grid:
    """A row for every outcome that occurs, a column for every system."""
    counts = {f"{system.name} (n = {system.counts().total()})": system.counts() for system in systems}
    rows = []
    for name, kind in CLASSES.items():
        if any(found[name] for found in counts.values()):
            cells = (f"{each[name]} ({100 * each[name] / each.total():.1f} %)" for each in counts.values())
            rows.append((kind.label, *cells))
    return Grid("Outcomes", ("outcome", *counts), tuple(rows), words=1)
