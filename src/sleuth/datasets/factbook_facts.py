"""Facts: what the Factbook says about a country in a few words that a question can ask for.

A fact's value stands word for word in the passage it is taken from; that is checked here, so
that every generated answer can be found in its evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from sleuth import factbook
from sleuth.factbook import Entry
from sleuth.text import contains, normalise
from sleuth.types import Passage


@dataclass(frozen=True, slots=True)
class Fact:
    """One attribute of one country."""

    value: str
    """As an answer: "Ouagadougou", "274,200 sq km"."""
    number: float | None
    """For comparisons, in the attribute's unit."""
    passage: Passage
    """The passage that says so."""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Country:
    """A country that questions are asked about."""

    code: str
    name: str
    """"Bahamas"; see `the` for use in a sentence."""
    facts: Mapping[str, Fact]
    borders: tuple[str, ...]
    """Neighbours, as the Factbook names them."""
    border_passage: Passage | None

    @property
    def the(self) -> str:
        """The name as it stands inside a sentence: "the Bahamas", "Peru"."""
        bare = self.name.removeprefix("The ")
        return f"the {bare}" if bare != self.name or _takes_article(bare) else bare


_ARTICLE = {
    "Maldives",
    "Netherlands",
    "Philippines",
    "Comoros",
    "Seychelles",
    "Central African Republic",
    "Dominican Republic",
    "Holy See",
}


def _takes_article(name: str) -> bool:
    return (
        name in _ARTICLE
        or name.startswith(("United ", "Republic ", "Democratic ", "Federated "))
        or name.endswith(" Islands")
    )


def _before_notes(text: str) -> str:
    return re.split(r"\s*[(;]", text, maxsplit=1)[0].strip()


def _plain(text: str) -> str:
    """A short name without figures, lists or remarks; "" if it is none."""
    value = _before_notes(text)
    return (
        value
        if 0 < len(value.split()) <= 5 and not re.search(r"\d|,|:|--|\bnote\b|transition", value)
        else ""
    )


def _height(text: str) -> str:
    match = re.match(r"([^\d,;(]+?)\s+-?[\d,.]+\s*m\b", text)
    name = match.group(1).strip() if match else ""
    return name if len(name.split()) <= 5 and not name.startswith(("unnamed", "location", "highest")) else ""


def _quantity(unit: str) -> Callable[[str], str]:
    pattern = re.compile(rf"([\d,.]+) {unit}\b")

    def read(text: str) -> str:
        match = pattern.match(text)
        return match.group(0) if match and match.group(1) != "0" else ""

    return read


def _count(text: str) -> str:
    match = re.match(r"[\d,]+(?=\s*(\(|$|;))", text)
    return match.group(0) if match else ""


def _percent(text: str) -> str:
    match = re.match(r"-?[\d.]+%", text)
    return match.group(0) if match else ""


def _date(text: str) -> str:
    match = re.match(
        r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December) \d{4}\b",
        text,
    )
    return match.group(0) if match else ""


def _anthem(text: str) -> str:
    match = re.match(r'"([^"]+)"', text)
    # A second title (a royal or regional anthem) would make two answers right.
    single = match is not None and text.count('"') == 2 and len(match.group(1).split()) <= 8
    return match.group(1).rstrip(",. ") if match and single else ""


def _internet(text: str) -> str:
    match = re.match(r"\.[a-z]{2}\b", text)
    return match.group(0) if match else ""


def _currency(text: str) -> str:
    match = re.match(r"([A-Za-z .'-]+) \([A-Z]{3}\)", text)
    return match.group(1).strip() if match else ""


@dataclass(frozen=True, slots=True)
class Attribute:
    """Where a fact stands and how it is read."""

    name: str
    """Noun phrase in questions: "highest point"."""
    field: str
    part: str
    """Sub-field; "" for the field's own text."""
    read: Callable[[str], str]
    """Text → answer, or "" if it holds none that is short and clear."""
    search: str = ""
    """Words a person would add to the country's name; default: the name."""
    ask: str = ""
    """Question with {} for the country; default: "What is the <name> of {}?"."""

    @property
    def query(self) -> str:
        """Search words."""
        return self.search or self.name

    def question(self, of: str) -> str:
        """The question for a country or a description of one."""
        return self.ask.format(of) if self.ask else f"What is the {self.name} of {of}?"


ATTRIBUTES = (
    Attribute("capital", "Capital", "name", _plain),
    Attribute("internet country code", "Internet country code", "", _internet),
    Attribute("national anthem", "National anthem(s)", "title", _anthem, "national anthem title"),
    Attribute("highest point", "Elevation", "highest point", _height, "elevation highest point"),
    Attribute(
        "date of independence", "Independence", "", _date, "independence", "When did {} become independent?"
    ),
    Attribute("national symbol", "National symbol(s)", "", _plain, "national symbols"),
    Attribute("currency", "Exchange rates", "Currency", _currency, "exchange rates currency"),
    Attribute("government type", "Government type", "", _plain),
    Attribute("total area", "Area", "total", _quantity("sq km"), "area total land water"),
    Attribute(
        "coastline length", "Coastline", "", _quantity("km"), "coastline", "How long is the coastline of {}?"
    ),
    Attribute("population", "Population", "total", _count, "population total male female"),
    Attribute("median age", "Median age", "total", _quantity("years")),
    Attribute(
        "life expectancy",
        "Life expectancy at birth",
        "total population",
        _quantity("years"),
        "life expectancy at birth",
    ),
    Attribute("number of airports", "Airports", "", _count, "airports", "How many airports are there in {}?"),
    Attribute("population growth rate", "Population growth rate", "", _percent),
    Attribute("mean elevation", "Elevation", "mean elevation", _quantity("m"), "elevation mean"),
    Attribute("land area", "Area", "land", _quantity("sq km"), "area land"),
)
BY_NAME = {attribute.name: attribute for attribute in ATTRIBUTES}


@cache
def countries() -> tuple[Country, ...]:
    """Independent countries with a capital, by code."""
    by_code: dict[str, dict[str, Entry]] = {}
    for entry in factbook.entries():
        by_code.setdefault(entry.code, {}).setdefault(entry.field, entry)
    found = []
    for code, fields in by_code.items():
        if (
            code == "ee"
            or "Dependency status" in fields
            or not {"Capital", "Government type"} <= fields.keys()
        ):
            continue  # the European Union, territories, oceans
        facts = {a.name: fact for a in ATTRIBUTES if (fact := _fact(a, fields)) is not None}
        if "capital" in facts and "population" in facts:
            borders, passage = _borders(fields)
            found.append(Country(code, fields["Capital"].country, facts, borders, passage))
    return tuple(found)


def _fact(attribute: Attribute, fields: Mapping[str, Entry]) -> Fact | None:
    entry = fields.get(attribute.field)
    text = entry.parts.get(attribute.part, "") if entry else ""
    value = attribute.read(text)
    if entry is None or not normalise(value):
        return None
    passage = next((p for p in _passages(entry) if contains(p.text, value)), None)
    if passage is None:
        return None
    digits = re.match(r"-?[\d,.]*\d", value)
    number = float(digits.group(0).replace(",", "")) if digits else None
    return Fact(value, number, passage)


def _passages(entry: Entry) -> list[Passage]:
    """The entry's passages, exactly as the corpus has them."""
    return list(factbook.passages_of(entry))


def _borders(fields: Mapping[str, Entry]) -> tuple[tuple[str, ...], Passage | None]:
    entry = fields.get("Land boundaries")
    text = entry.parts.get("border countries", "") if entry else ""
    if entry is None or not text:
        return (), None
    names = [re.sub(r"\s*\(.*?\)", "", part).strip() for part in text.split(";")]
    names = [m.group(1) for name in names if (m := re.match(r"(.+?) [\d,.]+ ?km", name))]
    passage = next((p for p in _passages(entry) if all(contains(p.text, name) for name in names)), None)
    return tuple(names), passage
