"""Countries and their facts: an attribute of a country with the passage that states it.

A fact exists only if one passage contains its value, so that every answer has its evidence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from sleuth import factbook
from sleuth.datasets.factbook_questions.attributes import ATTRIBUTES, table
from sleuth.datasets.factbook_questions.readings import plain
from sleuth.factbook import Entry
from sleuth.text import contains, normalise
from sleuth.types import Hop, Passage

RELATIONS = ("neighbor with the longest border", "main export partner", "main import partner", "former ruler")
"""Attributes whose value is another country."""
_WITH_ARTICLE = (
    "Bahamas|Central African Republic|Comoros|Dominican Republic|Gambia|Maldives|Netherlands|Philippines|Seychelles"
    "|(United|Republic of|Democratic|Federated) .*|.* Islands"
)
_REQUIRED = {"Capital", "Country name", "Government type", "Independence", "Nationality", "Population"}
"""Fields of every independent country."""

_ALIASES = {row["code"]: row["names"].split(" | ") for row in table("names.tsv")}
"""Names that the Factbook's lists and people use, in addition to its short and long forms."""


@dataclass(frozen=True, eq=False)
class Country:
    """Independent country."""

    code: str  # Two letters, as in passage ids: "fr".
    names: tuple[str, ...]
    """Name without article, then other accepted names: "Bahamas", "Commonwealth of The Bahamas"."""
    fields: Mapping[str, Entry]  # Field name → entry.

    @property
    def name(self) -> str:
        """Without article: "Bahamas"."""
        return self.names[0]

    @property
    def the(self) -> str:
        """Name inside a sentence: "the Bahamas", "Peru"."""
        return f"the {self.name}" if re.fullmatch(_WITH_ARTICLE, self.name) else self.name

    def part(self, field: str, pattern: str) -> str:
        """Text of the field's first sub-field whose whole name matches; "" if there is none."""
        parts = self.fields[field].parts if field in self.fields else {}
        return next((text for name, text in parts.items() if re.fullmatch(pattern, name)), "")

    def evidence(self, field: str, values: Sequence[str]) -> Passage | None:
        """First passage of the field with all values; None if there is none, or it is too long to be found."""
        pieces = factbook.passages_of(self.fields[field])
        passage = next((p for p in pieces if all(contains(p.text, value) for value in values)), None)
        # BM25 ranks a list of many neighbors below the lists of each of them.
        most = 30 if field == "Land boundaries" else factbook.MAX_WORDS
        return passage if passage and len(passage.text.split()) <= most else None


class Fact(NamedTuple):
    """One attribute of one country; value, number and aliases as in Reading."""

    country: Country
    noun: str
    value: str
    number: float | None
    aliases: tuple[str, ...]
    passage: Passage

    @property
    def hop(self) -> Hop:
        """Search for this fact when the country is known."""
        attribute = ATTRIBUTES[self.noun]
        search = f"{self.country.name} {attribute.search}"
        return Hop(search, self.passage.id, self.value, attribute.need.format(self.country.the))


@cache
def fact(country: Country, noun: str) -> Fact | None:
    """The fact, or None if the Factbook has no single clear value."""
    attribute = ATTRIBUTES[noun]
    reading = attribute.read(country.part(attribute.field, attribute.part))
    # A capital or a local name that repeats the country's name would make the second search needless.
    if reading is None or normalise(plain(reading.value)) == normalise(plain(country.name)):
        return None
    if noun in RELATIONS:
        reading = reading._replace(aliases=other_names(reading.value))
    passage = country.evidence(attribute.field, [reading.value])
    return Fact(country, noun, *reading, passage) if passage else None


def facts(noun: str, members: Sequence[Country]) -> list[Fact]:
    """Facts of every member that has the attribute."""
    return [found for country in members if (found := fact(country, noun)) is not None]


def is_stated(country: Country, noun: str) -> bool:
    """Whether the Factbook has the attribute's field for the country, readable or not."""
    return ATTRIBUTES[noun].field in country.fields


@cache
def countries() -> tuple[Country, ...]:
    """Every independent country with a government, a capital and a population, by code."""
    return tuple(country for country in everywhere() if _is_independent(country.fields))


@cache
def everywhere() -> tuple[Country, ...]:
    """Everything that has a Factbook page, territories and oceans included, by code."""
    by_code: dict[str, dict[str, Entry]] = {}
    for entry in factbook.entries():
        # Where a field occurs in two sections, only the first entry has the plain id.
        by_code.setdefault(entry.code, {}).setdefault(entry.field, entry)
    return tuple(Country(code, _names(code, fields), fields) for code, fields in by_code.items())


def named(text: str) -> Country | None:
    """Country that the Factbook's lists call `text`: "USA", "Trinidad & Tobago"."""
    return _by_name().get(_key(text))


def other_names(text: str) -> tuple[str, ...]:
    """Names of the country that `text` names, except `text`."""
    country = named(text)
    return tuple(name for name in country.names if name != text) if country else ()


def _is_independent(fields: Mapping[str, Entry]) -> bool:
    """False for territories, oceans, the European Union, the Holy See and the World."""
    is_complete = fields.keys() >= _REQUIRED and fields["Capital"].code not in ("ee", "vt", "xx")
    return is_complete and "Dependency status" not in fields and fields["Independence"].text[:4] != "none"


def _names(code: str, fields: Mapping[str, Entry]) -> tuple[str, ...]:
    name = next(iter(fields.values())).country.removeprefix("The ")
    forms = fields["Country name"].parts if "Country name" in fields else {}
    long = re.sub(r"\s*[(;].*", "", forms.get("conventional long form", "none"))
    long = name if long.lower() in ("none", "na", name.lower()) else long
    return tuple(dict.fromkeys((name, long, plain(name), *_ALIASES.get(code, []))))


@cache
def _by_name() -> dict[str, Country]:
    # Reversed, so that the first country of a name wins.
    return {_key(name): country for country in reversed(countries()) for name in country.names}


def _key(text: str) -> str:
    return normalise(plain(re.sub(r"\s*\(.*?\)", "", text)).replace("&", "and"))
