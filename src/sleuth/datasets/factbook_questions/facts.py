"""Facts: an attribute of a country with the passage that states it.

A fact exists only if its value stands in one passage, so that every generated answer can be
found in its evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sleuth import factbook
from sleuth.datasets.factbook_questions.attributes import ATTRIBUTES
from sleuth.datasets.factbook_questions.countries import Country, by_code, plain
from sleuth.factbook import Entry
from sleuth.text import contains, normalise
from sleuth.types import Hop, Passage


@dataclass(frozen=True)
class Fact:
    """One attribute of one country."""

    country: Country
    noun: str
    value: str
    number: float | None
    aliases: tuple[str, ...]
    passage: Passage

    @property
    def answers(self) -> tuple[str, ...]:
        """The value, then what else is right."""
        return (self.value, *self.aliases)

    def hop(self) -> Hop:
        """The step that looks this fact up when the country is known."""
        attribute = ATTRIBUTES[self.noun]
        search = f"{self.country.name} {attribute.search}"
        return Hop(search, self.passage.id, self.value, attribute.need.format(self.country.the))


@cache
def fact(code: str, noun: str) -> Fact | None:
    """The fact, or None if the Factbook does not state it in a form that can be asked for."""
    country, attribute = by_code()[code], ATTRIBUTES[noun]
    reading = attribute.read(country.part(attribute.field, attribute.part))
    # A capital or a local name that repeats the country's name would make the second search needless.
    if reading is None or normalise(plain(reading.value)) == normalise(plain(country.name)):
        return None
    passage = next(
        (p for p in pieces(country.fields[attribute.field]) if contains(p.text, reading.value)), None
    )
    if passage is None or len(passage.text.split()) > attribute.longest:
        return None
    return Fact(country, noun, *reading, passage)


def is_stated(country: Country, noun: str) -> bool:
    """Whether the Factbook has this field for the country at all, readable or not."""
    return ATTRIBUTES[noun].field in country.fields


def pieces(entry: Entry) -> tuple[Passage, ...]:
    """The entry's passages, as the corpus has them."""
    return tuple(factbook.passages_of(entry))
