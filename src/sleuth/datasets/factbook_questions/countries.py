"""The countries that questions are asked about, their names in a sentence, and names → countries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sleuth import factbook
from sleuth.factbook import Entry
from sleuth.text import normalise


@dataclass(frozen=True, eq=False)
class Country:
    """An independent country."""

    code: str
    """As in passage ids: "fr"."""
    name: str
    """Without article: "Bahamas"."""
    aliases: tuple[str, ...]
    """Other names that are right as an answer: "Commonwealth of The Bahamas"."""
    fields: Mapping[str, Entry]
    """Field name → entry."""

    @property
    def the(self) -> str:
        """The name as it stands inside a sentence: "the Bahamas", "Peru"."""
        return f"the {self.name}" if _takes_article(self.name) else self.name

    def part(self, field: str, pattern: str) -> str:
        """The text of the first sub-field whose whole name matches; "" if there is none."""
        entry = self.fields.get(field)
        parts = entry.parts if entry else {}
        return next((text for name, text in parts.items() if re.fullmatch(pattern, name)), "")


_ARTICLE = {
    "Bahamas", "Central African Republic", "Comoros", "Dominican Republic", "Gambia", "Holy See", "Maldives",
    "Netherlands", "Philippines", "Seychelles",
}  # fmt: skip


def _takes_article(name: str) -> bool:
    return name in _ARTICLE or bool(re.match(r"(United|Republic of|Democratic|Federated) |.* Islands$", name))


_ALIASES: dict[str, tuple[str, ...]] = {
    "ae": ("UAE",),
    "bm": ("Myanmar",),
    "bk": ("Bosnia & Herzegovina", "Bosnia"),
    "cf": ("Congo (Brazzaville)", "Congo, Republic of the", "Congo-Brazzaville", "Republic of Congo"),
    "cg": (
        "DRC",
        "DR Congo",
        "Democratic Republic of Congo",
        "Congo (Kinshasa)",
        "Congo, Democratic Republic of the",
    ),
    "ct": ("CAR",),
    "cv": ("Cape Verde",),
    "ez": ("Czech Republic",),
    "fm": ("Micronesia",),
    "iv": ("Cote d'Ivoire", "Ivory Coast"),
    "kn": ("DPRK",),
    "ks": ("Republic of Korea", "S. Korea"),
    "mk": ("Macedonia",),
    "nz": ("NZ",),
    "sc": ("St. Kitts and Nevis", "St. Kitts & Nevis"),
    "st": ("St. Lucia",),
    "tt": ("East Timor",),
    "tu": ("Turkiye", "Türkiye"),
    "uk": ("UK", "Great Britain", "Britain"),
    "us": ("US", "USA", "United States of America", "America"),
    "vc": ("St. Vincent and the Grenadines", "St. Vincent & the Grenadines"),
    "vt": ("Vatican City", "Vatican"),
    "wz": ("Swaziland",),
}
"""Names beside the Factbook's own short and long forms, as its lists and people write them."""


@cache
def countries() -> tuple[Country, ...]:
    """Every independent country with a government, a capital and a population, by code."""
    by_code: dict[str, dict[str, Entry]] = {}
    for entry in factbook.entries():
        # The first entry of a field wins: where a field stands in two sections, only that one has the plain id.
        by_code.setdefault(entry.code, {}).setdefault(entry.field, entry)
    needed = {"Capital", "Government type", "Independence", "Nationality", "Population"}
    return tuple(
        Country(code, _bare(fields["Capital"].country), _names(code, fields), fields)
        for code, fields in by_code.items()
        if needed <= fields.keys() and "Dependency status" not in fields and not _is_territory(fields)
    )


@cache
def by_code() -> dict[str, Country]:
    """Code → country."""
    return {country.code: country for country in countries()}


def named(text: str) -> Country | None:
    """The country that the Factbook calls `text` in its lists: "USA", "Trinidad & Tobago"."""
    return _by_name().get(_key(text))


@cache
def _by_name() -> dict[str, Country]:
    found: dict[str, Country] = {}
    for country in countries():
        for name in (country.name, *country.aliases):
            found.setdefault(_key(name), country)
    return found


def _key(text: str) -> str:
    return normalise(plain(re.sub(r"\s*\(.*?\)", "", text)).replace("&", "and"))


def plain(text: str) -> str:
    """Text without accents: "San Jose"."""
    marks = unicodedata.normalize("NFD", text.replace("’", "'"))
    return "".join(c for c in marks if not unicodedata.combining(c))


def _bare(name: str) -> str:
    return name.removeprefix("The ")


def _is_territory(fields: Mapping[str, Entry]) -> bool:
    """Whether nobody would call it a country: territories, the European Union, the Holy See, the World."""
    return fields["Independence"].text.startswith("none") or fields["Capital"].code in {"ee", "vt", "xx"}


def _names(code: str, fields: Mapping[str, Entry]) -> tuple[str, ...]:
    name = _bare(fields["Capital"].country)
    forms = fields["Country name"].parts if "Country name" in fields else {}
    long = re.sub(r"\s*[(;].*", "", forms.get("conventional long form", "none"))
    names = [
        *([] if long.lower() in ("none", "na", name.lower()) else [long]),
        plain(name),
        *_ALIASES.get(code, ()),
    ]
    return tuple(dict.fromkeys(n for n in names if n and n != name))
