"""Study: a table or figure as values. Rows name recipes, columns name data and measures.

A user's own table is a .py file that defines STUDY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sleuth.checked import Checked

Scale = Literal["cpu", "paper"]
SCALES: tuple[Scale, ...] = ("cpu", "paper")


@dataclass(frozen=True, slots=True)
class System(Checked):
    """Recipes that one row of a table runs."""

    recipe: str
    """Recipe that is trained, if it has anything to train, and evaluated."""
    settings: tuple[str, ...] = ()
    """Overrides as for --set."""
    evaluated: str = ""
    """Recipe under which the trained weights are evaluated; "" = the same."""
    reader: str = ""
    """Recipe of a reader that answers from this system's evidence; it is trained first."""
    reads: str = ""
    """Recipe under which the reader reads that evidence."""


@dataclass(frozen=True, slots=True)
class Row(Checked):
    """One row of a table, or one line of a figure."""

    label: str
    """As printed."""
    paper: System | None = None
    cpu: System | None = None
    published: str = ""
    """Method in the published table; "" = the label."""
    model: str = ""
    """Model in the published table; "" = any."""
    lacks: str = ""
    """Why it cannot be run."""

    def at(self, scale: Scale) -> System | None:
        """The system at a scale; None if it is not run there."""
        return self.paper if scale == "paper" else self.cpu

    def missing(self, scale: Scale) -> str:
        """Why there is no system at this scale, or ""."""
        return "" if self.at(scale) else self.lacks or f"no recipe at {scale} scale"


@dataclass(frozen=True, slots=True)
class Study(Checked):
    """One table or figure."""

    name: str
    """Such as "eval-rar/table-2"."""
    title: str
    rows: tuple[Row, ...] = ()
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Scale → data set → data spec to evaluate on."""
    measures: tuple[str, ...] = ("em",)
    """Figures of an evaluation; "latency" is its seconds a question."""
    source: tuple[str, str] = ("", "")
    """Paper and table with published figures."""
    levels: tuple[int, ...] = (0,)
    """Irrelevant passages added to each result."""
    curves: tuple[str, ...] = ()
    """Training figures to draw, a line for each row."""
    last: tuple[str, ...] = ()
    """Training figures whose mean over the last third of the steps is a column."""
    whole: str = ""
    """Label of the row that is shown whole passages; rows that write no evidence are compressions of these."""
    overlap: tuple[str, str] = ("", "")
    """Two figures of 0 and 1 whose joint shares are counted (EviOmni, Figure 2)."""
    spread: bool = False
    """Whether the measures are drawn as distributions over questions too."""
    notes: tuple[str, ...] = ()
    """Differences from the paper that follow from the study itself."""
    lacks: str = ""
    """Why there is nothing to run."""

    def label(self, row: Row) -> str:
        """The row's label, with its published model where another row has the same label."""
        repeated = sum(other.label == row.label for other in self.rows) > 1
        return f"{row.label}, {row.model}" if repeated and row.model else row.label

    def runs(self, scale: Scale) -> list[Row]:
        """Rows that can be run at a scale."""
        return [] if self.lacks else [row for row in self.rows if row.at(scale)]

    def why_not(self, scale: Scale) -> str:
        """Why nothing runs at this scale, or ""."""
        return "" if self.runs(scale) else self.lacks or f"no row has a recipe at {scale} scale"
