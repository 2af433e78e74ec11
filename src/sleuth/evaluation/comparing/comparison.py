"""Comparison: what a paired comparison found, as values; the words that go beside it in every format.

A column is one system: one evaluation, or several that differ in nothing but the training seed.
Invariant: figures that do not mean the same, or that are not of held-out questions, carry stamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sleuth.evaluation.figures import figure, number
from sleuth.evaluation.result import Leaks
from sleuth.evaluation.statistics import (
    Difference,
    Estimate,
    SeedReport,
    minimum_detectable_difference,
)
from sleuth.text import counted

MAIN = ("em", "f1")
"""Figures that are also told by data set, and whose smallest detectable difference is said."""
SMALL = 1000
"""Up to this many questions the smallest detectable difference is printed."""


@dataclass(frozen=True, slots=True)
class Part:
    """The figures of one system on the shared questions, or on those of one data set."""

    figures: Mapping[str, Estimate]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    """This minus the baseline; empty for the baseline."""
    adjusted: Mapping[str, float | None] = field(default_factory=dict)
    """The differences' p-values after Holm, over all tests of the same figure in the same table."""


@dataclass(frozen=True, slots=True)
class Column:
    """One system, on the shared questions."""

    name: str
    folders: tuple[str, ...]
    """Of its evaluations: one, or one for each seed."""
    model: str
    figures: Mapping[str, Estimate]
    differences: Mapping[str, Difference]
    """This minus the baseline; empty for the baseline."""
    adjusted: Mapping[str, float | None]
    """The differences' p-values after Holm over the systems that are held against the baseline."""
    by_dataset: Mapping[str, Part]
    """The main figures by data set; empty if all questions are of one."""
    seed_numbers: tuple[int, ...]
    """Seeds of training, in the order of `folders`; empty where one evaluation stands alone."""
    seeds: Mapping[str, SeedReport]
    """Spread over seeds, apart from that over questions; empty where one evaluation stands alone."""
    only_here: int
    """Questions of this system that some other lacks; they count nowhere in this comparison."""
    faults: int
    """Shared questions whose episode failed from outside, counted as wrong; all seeds together."""
    leaks: Leaks
    stamps: tuple[str, ...] = ()
    """Why these are no figures of held-out questions."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evaluations that were put side by side."""

    n: int
    """Shared questions."""
    datasets: Mapping[str, int]
    """Shared questions by data set."""
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    """Of the evaluations as given; with seeds there are more of them than columns."""
    disagreeing: tuple[str, ...]
    """Settings that must agree and do not; not empty only if that was asked for."""
    compared: tuple[str, ...]
    """Settings that differ as they may: what is being compared."""
    versions: tuple[str, ...]
    """Packages whose versions differ."""
    engines: tuple[str, ...]
    """In what the running of the models differs: engine, arithmetic, device."""
    values: Mapping[str, tuple[str, ...]]
    """Name of each setting or version that differs → its value in every evaluation."""
    missing: tuple[str, ...] = ()
    """Figures that some evaluation has and some other has not; they are in no table."""
    apart: tuple[str, ...] = ()
    """Seeds of one recipe that may not share a column, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; stamps and notes included."""
        return dict(msgspec.to_builtins(self)) | {"stamps": self.stamps(), "notes": self.notes()}

    def stamps(self) -> list[str]:
        """What forbids to read the figures as they stand."""
        found = []
        if self.disagreeing:
            found.append(f"NOT COMPARABLE: they differ in {', '.join(map(self.told, self.disagreeing))}")
        found += [f"{column.name}: {stamp}" for column in self.columns for stamp in column.stamps]
        return found

    def told(self, name: str) -> str:
        """A setting with its values: "limits.top_k (a: 3, b: 5)"."""
        return told(name, self.names, self.values.get(name, ()))

    def notes(self) -> list[str]:
        """What else a reader of the table must know."""
        notes = [self._basis()]
        if len(self.columns) > 1:
            notes.append(f"differences are to {self.columns[0].name}, in pairs; {self._tests()}")
            notes += self._detectable()
            what = ", ".join(map(self.told, self.compared))
            notes.append(
                f"compared: {what}" if what else "the same model, weights, protocol and reward in all"
            )
        if self.versions:
            notes.append(f"other versions of {', '.join(map(self.told, self.versions))}")
        if self.engines:
            notes.append(f"run in other ways: {', '.join(map(self.told, self.engines))}")
        if self.missing:
            notes.append(f"not in all of them: {', '.join(figure(name).label for name in self.missing)}")
        notes += self.apart
        for column in self.columns:
            notes += _column_notes(column)
        return notes

    def _basis(self) -> str:
        parts = ", ".join(f"{count} {name or 'unnamed'}" for name, count in self.datasets.items())
        of = f" ({parts})" if len(self.datasets) > 1 else ""
        where = " in all of them" if len(self.names) > 1 else ""
        return (
            f"{counted(self.n, 'question')}{where}{of}; brackets are 95 % bootstrap intervals over questions"
        )

    def _tests(self) -> str:
        """How p came about, and over what Holm went."""
        held = len(self.columns) - 1
        families = []
        if held > 1:
            families.append(f"the {held} systems held against it")
        if len(self.datasets) > 1:
            parts = counted(len(self.datasets), "data set")
            families.append(
                f"{f'{held} systems times {parts}' if held > 1 else parts} in the table by data set"
            )
        test = "p from two-sided sign flips"
        if not families:
            return f"{test}; one test a figure, so nothing to adjust for"
        return f"{test}; p (Holm): adjusted for each figure over {', and over '.join(families)}"

    def _detectable(self) -> list[str]:
        """The smallest differences that these questions can tell apart; none said for many questions."""
        if self.n > SMALL:
            return []
        if self.n < 2:
            return ["one question: no difference can be told from chance"]
        found = []
        for column in self.columns[1:]:
            told = [text for name in MAIN if (text := _smallest(column, name))]
            if told:
                found.append(
                    f"{column.name}: differences below {' and '.join(told)} are not told from chance at this n"
                )
        return found


def told(name: str, names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """A setting's name and what it is in each evaluation."""
    pairs = ", ".join(f"{run}: {value}" for run, value in zip(names, values, strict=False))
    return f"{name} ({pairs})" if pairs else name


def _smallest(column: Column, name: str) -> str:
    difference = column.differences.get(name)
    if difference is None or difference.n < 2:
        return ""
    # Where no question differs the spread seen is 0, and would promise that nothing is too small to be seen.
    least = difference.detectable or minimum_detectable_difference(difference.n)
    return f"{number(least, name)} {figure(name).label} points"


def _column_notes(column: Column) -> list[str]:
    notes = []
    if column.seed_numbers:
        seeds = ", ".join(map(str, column.seed_numbers))
        notes.append(
            f"{column.name}: mean over seeds {seeds}; brackets resample questions, and no seed is resampled"
        )
    if column.only_here:
        notes.append(f"{column.name}: {counted(column.only_here, 'question')} that others lack, left out")
    if column.faults:
        notes.append(f"{column.name}: {counted(column.faults, 'episode')} failed and count as wrong")
    if not column.leaks.checked:
        notes.append(f"{column.name}: not checked for training questions")
    return notes
