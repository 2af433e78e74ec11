"""Attributes: what questions ask about, one row of attributes.tsv each.

Columns of the table:
- group: "name" (a name or a date), "figure" or "sparse". Nearly every country has a figure, and a missing one may
  mean zero. Only some entries have a sparse one, but every country has it in reality, so zero is never right.
- noun: Name of the attribute, as in "the highest point of Peru".
- place: Field of the Factbook, or "field > pattern of the sub-field's whole name".
- reader: Function in readings.py that finds the value; `unit` has its arguments, separated by ", ".
- search: Search terms that follow the country's name; empty = the noun.
- need: Noun phrase for the value, {} is the country; empty = "the <noun> of {}".
- ask: Wordings of the question, separated by " | ". "=" or empty = "What is <need>?", "-" = never asked.

In wordings {} comes last wherever English allows: a country may be described by half a sentence.
"""

import csv
from pathlib import Path
from typing import NamedTuple

from sleuth.datasets.factbook_questions import readings
from sleuth.datasets.factbook_questions.readings import Reader


class Attribute(NamedTuple):
    """One row of the table, with its defaults filled in."""

    noun: str
    group: str
    field: str
    part: str  # Pattern of the sub-field's whole name; "" is the field's own text.
    read: Reader
    search: str
    need: str
    ask: tuple[str, ...]

    @property
    def slug(self) -> str:
        """Part of question ids."""
        return slug(self.noun)


def slug(noun: str) -> str:
    return noun.replace("'", "").replace(" ", "-").lower()


def table(name: str) -> list[dict[str, str]]:
    """Rows of a table in this folder, column → cell."""
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _attribute(row: dict[str, str]) -> Attribute:
    field, _, part = row["place"].partition(" > ")
    reader = getattr(readings, row["reader"])
    read = reader(*row["unit"].split(", ")) if row["unit"] else reader
    need = row["need"] or f"the {row['noun']} of {{}}"
    wordings = (row["ask"] or "=").split(" | ")
    ask = tuple(f"What is {need}?" if wording == "=" else wording for wording in wordings if wording != "-")
    return Attribute(row["noun"], row["group"], field, part, read, row["search"] or row["noun"], need, ask)


ATTRIBUTES = {row["noun"]: _attribute(row) for row in table("attributes.tsv")}  # Noun → attribute.
ASKED = tuple(attribute for attribute in ATTRIBUTES.values() if attribute.ask)
"""Attributes that questions ask for."""
SPARSE = tuple(attribute for attribute in ATTRIBUTES.values() if attribute.group == "sparse")
"""Attributes that unanswerable questions ask for."""
