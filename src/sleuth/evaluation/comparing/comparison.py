"""Comparison: the values that a paired comparison gives, with the warnings and notes of every format.

A column is one system: one evaluation, or several that differ only in the training seed.
Invariant: figures that are not comparable, or not of held-out questions, carry stamps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sleuth.evaluation.figures import figure, number
from sleuth.evaluation.result import Leaks
from sleuth.evaluation.statistics import Difference, Estimate, SeedReport, minimum_detectable_difference
from sleuth.text import counted

MAIN = ("em", "f1")  # Figures with a table by data set, a table by seed and a smallest detectable difference.
SMALL = 1000  # Most questions for which the smallest detectable difference is noted.


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Figures of one system on the shared questions, or on those of one data set."""

    figures: Mapping[str, Estimate]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    """This minus the baseline; empty for the baseline."""
    adjusted: Mapping[str, float | None] = field(default_factory=dict)
    """p-values of the differences after Holm, over all tests of the same figure in the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Part):
    """One system on the shared questions."""

    name: str
    folders: tuple[str, ...]  # Evaluation folders: one, or one for each seed.
    by_dataset: Mapping[str, Part] = field(default_factory=dict)
    """The main figures by data set; empty if all questions are of one."""
    seed_numbers: tuple[int, ...] = ()
    """Training seeds, in the order of `folders`; empty for a single evaluation."""
    seeds: Mapping[str, SeedReport] = field(default_factory=dict)
    """Spread over seeds; empty for a single evaluation."""
    only_here: int  # Questions of this system that another lacks; they are left out of the comparison.
    faults: int
    """Shared questions whose episode failed outside the policy, counted as wrong; all seeds together."""
    leaks: Leaks
    stamps: tuple[str, ...] = ()  # Reasons why the figures are not of held-out questions.


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evaluations on the questions they share."""

    n: int  # Shared questions.
    datasets: Mapping[str, int]  # Shared questions by data set.
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    """Names of the evaluations as given; with seeds there are more of them than columns."""
    disagreeing: Mapping[str, tuple[str, ...]]
    """Settings that must agree and do not → the value in each evaluation; empty unless the comparison was forced."""
    compared: Mapping[str, tuple[str, ...]]
    versions: Mapping[str, tuple[str, ...]]
    engines: Mapping[str, tuple[str, ...]]  # Differences in engine, dtype or device.
    missing: tuple[str, ...] = ()  # Figures that only some evaluations have; they are in no table.

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, stamps and notes included."""
        return dict(msgspec.to_builtins(self)) | {"stamps": self.stamps(), "notes": self.notes()}

    def stamps(self) -> list[str]:
        """Warnings that invalidate the comparison."""
        found = [f"{column.name}: {stamp}" for column in self.columns for stamp in column.stamps]
        if self.disagreeing:
            found.insert(0, f"NOT COMPARABLE: they differ in {with_values(self.names, self.disagreeing)}")
        return found

    def notes(self) -> list[str]:
        """Remarks that belong to the tables."""
        several = len(self.columns) > 1
        parts = ", ".join(f"{count} {name or 'unnamed'}" for name, count in self.datasets.items())
        questions = counted(self.n, "question") + (" in all of them" if len(self.names) > 1 else "")
        questions += f" ({parts})" if len(self.datasets) > 1 else ""
        compared = with_values(self.names, self.compared)
        same = "the same model, weights, protocol and reward in all"
        notes: dict[str, object] = {
            f"{questions}; brackets are 95 % bootstrap intervals over questions": True,
            f"differences are to {self.columns[0].name}, paired by question; p from two-sided sign flips": several,
            "p (Holm): adjusted for each figure over all tests in the same table": len(self.columns) > 2
            or (several and len(self.datasets) > 1),
            **dict.fromkeys(self._detectable(), several),
            f"compared: {compared}" if compared else same: several,
            f"other versions of {with_values(self.names, self.versions)}": self.versions,
            f"other engine settings: {with_values(self.names, self.engines)}": self.engines,
            f"not in all of them: {', '.join(figure(name).label for name in self.missing)}": self.missing,
        }
        for c in self.columns:
            notes |= {
                f"{c.name}: {counted(c.only_here, 'question')} that others lack, left out": c.only_here,
                f"{c.name}: {counted(c.faults, 'episode')} failed and count as wrong": c.faults,
                f"{c.name}: not checked for training questions": not c.leaks.checked,
            }
        return [note for note, applies in notes.items() if applies]

    def _detectable(self) -> list[str]:
        """The smallest difference of each main figure that these questions can detect; [] for many questions."""
        if self.n < 2:
            return ["one question: no difference is significant"]
        found = []
        for column in self.columns[1:] if self.n <= SMALL else ():
            differences = {name: d for name in MAIN if (d := column.differences.get(name)) and d.n > 1}
            # If no question differs, the observed spread of 0 would make any difference detectable.
            least = " and ".join(
                f"{number(d.detectable or minimum_detectable_difference(d.n), name)} {figure(name).label} points"
                for name, d in differences.items()
            )
            found += [f"{column.name}: differences below {least} are within noise at this n"] if least else []
        return found


def with_values(names: Sequence[str], settings: Mapping[str, Sequence[str]]) -> str:
    """Settings with their values: "limits.top_k (a: 3, b: 5)"."""
    pairs = {name: map(": ".join, zip(names, values, strict=True)) for name, values in settings.items()}
    return ", ".join(f"{name} ({', '.join(each)})" for name, each in pairs.items())
