"""Clues: ways to speak of a country without naming it, each with the search that resolves it.

A clue names exactly one of all the countries and territories of the Factbook, and does not give
its country away by sharing a word with it ("the country whose capital is Kuwait City").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from sleuth import factbook
from sleuth.datasets.factbook_questions.attributes import ATTRIBUTES, Attribute, slug
from sleuth.datasets.factbook_questions.countries import Country, named, plain
from sleuth.datasets.factbook_questions.facts import Fact, fact
from sleuth.factbook import Entry
from sleuth.text import normalise
from sleuth.types import Hop


@dataclass(frozen=True)
class Clue:
    """A description that stands for a country."""

    country: Country
    slug: str
    """For ids."""
    phrase: str
    """Such as "the country whose capital is Ouagadougou"."""
    hops: tuple[Hop, ...]
    """The searches that lead to the country."""


IDENTIFYING = {
    "capital": "the country whose capital is {}",
    "internet country code": "the country whose internet country code is {}",
    "national anthem": 'the country whose national anthem is "{}"',
    "highest point": "the country whose highest point is {}",
    "lowest point": "the country whose lowest point is {}",
    "date of independence": "the country that became independent on {}",
    "national symbol": "the country whose national symbol is {}",
    "currency": "the country that uses {} as its currency",
    "aircraft registration prefix": "the country whose aircraft registration prefix is {}",
    "head of state": "the country whose head of state is {}",
    "prime minister": "the country whose prime minister is {}",
    "local name of the legislature": 'the country whose legislature is locally called "{}"',
    "former name": "the country formerly known as {}",
    "local short name": "the country known locally as {}",
    "most populous city": "the country whose most populous city is {}",
}
"""Attributes that tell countries apart → how they describe one."""

_SEARCH = {
    "capital": "capital name",
    "currency": "exchange rates currency",
    "head of state": "chief of state",
    "local name of the legislature": "legislature name",
}
"""What is typed before the value, where that is not what is typed behind a country's name."""

_HOPELESS = {".at", ".be", ".by", ".do", ".in", ".is", ".it", ".to", ".ve", "Island"}
"""Values that a search engine takes for common words."""

RELATIONS = ("neighbor with the longest border", "main export partner", "main import partner", "former ruler")
"""Attributes whose value is another country; what they need describes it."""


@cache
def fact_clues(country: Country) -> tuple[Clue, ...]:
    """Clues by facts that no other country or territory shares."""
    found = []
    for noun, phrase in IDENTIFYING.items():
        known = fact(country.code, noun)
        if known is None or known.value in _HOPELESS or gives_away(known) or not _is_unique(known):
            continue
        attribute = ATTRIBUTES[noun]
        described = phrase.format(_in_sentence(known))
        hop = Hop(
            f"{_SEARCH.get(noun, attribute.search)} {known.value}", known.passage.id, country.name, described
        )
        found.append(Clue(country, attribute.slug, described, (hop,)))
    return tuple(found)


def relation_clues(members: Sequence[Country]) -> Iterator[Clue]:
    """Clues by a relation to a named country; both countries are members."""
    for source in members:
        for noun, phrase, target, known in _relations(source, members):
            yield Clue(target, f"{slug(noun)}-{source.code}", phrase.format(source.the), (known.hop(),))


def chained_clues(members: Sequence[Country]) -> Iterator[Clue]:
    """Clues by a relation to a country that is itself only described: two searches."""
    for source in members:
        for first in fact_clues(source):
            for noun, phrase, target, known in _relations(source, members):
                if known.passage.id != first.hops[0].passage_id and target.name not in first.phrase:
                    identity = f"{slug(noun)}-{source.code}-{first.slug}"
                    yield Clue(target, identity, phrase.format(first.phrase), (*first.hops, known.hop()))


def _relations(source: Country, members: Sequence[Country]) -> Iterator[tuple[str, str, Country, Fact]]:
    for noun in RELATIONS:
        known = fact(source.code, noun)
        target = named(known.value) if known else None
        if known and target and target is not source and target in members:
            yield noun, ATTRIBUTES[noun].need, target, known


_ARTICLE = {
    "lowest point": r".* (Rivers?|River delta|Nile|Depression|Sea|Strait|Darya)|(Bay|Gulf) of .*",
    "national symbol": r"(?!Mount).*",
    "former name": r".* (Republic|Coast|Islands|Hebrides|State|Protectorate|Indies|Philippines)",
}
"""Values that take an article inside a sentence."""


def _in_sentence(known: Fact) -> str:
    """The value as it stands inside a sentence: "the Mekong River"."""
    value = re.sub(r"^The ", "the ", known.value)
    return f"the {value}" if re.fullmatch(_ARTICLE.get(known.noun, "-"), value) else value


def gives_away(known: Fact) -> bool:
    """Whether the value shares the beginning of a word with the country's name or adjective."""
    adjective = fact(known.country.code, "nationality adjective")
    own = f"{known.country.name} {adjective.value if adjective else ''}"
    return bool(_beginnings(known.value) & _beginnings(own))


def _beginnings(text: str) -> set[str]:
    return {word[:4] for word in normalise(plain(text)).split() if len(word) > 3}


def _is_unique(known: Fact) -> bool:
    """Whether no other entry mentions the value at the same place, be it as one of several."""
    value = f" {normalise(known.value)} "
    texts = _texts(ATTRIBUTES[known.noun])
    return not any(value in text for code, text in texts if code != known.country.code)


@cache
def _texts(attribute: Attribute) -> tuple[tuple[str, str], ...]:
    """(code, normalised text) of an attribute for all countries and territories."""
    return tuple(
        (
            code,
            f" {normalise(Country(code, '', (), {attribute.field: entry}).part(attribute.field, attribute.part))} ",
        )
        for code, entry in _entries(attribute.field).items()
    )


@cache
def _entries(field: str) -> dict[str, Entry]:
    return {entry.code: entry for entry in reversed(factbook.entries()) if entry.field == field}
