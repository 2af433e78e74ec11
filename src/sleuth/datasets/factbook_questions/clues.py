"""Clues: descriptions of a country that do not name it, each with the searches that resolve it.

A clue fits exactly one of all countries and territories of the Factbook. It shares no word with the
country's name ("the country whose capital is Kuwait City").
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from sleuth.datasets.factbook_questions.attributes import ATTRIBUTES, slug, table
from sleuth.datasets.factbook_questions.facts import RELATIONS, Country, Fact, everywhere, fact, named
from sleuth.datasets.factbook_questions.readings import plain
from sleuth.text import normalise
from sleuth.types import Hop


class Clue(NamedTuple):
    """Phrase for a country."""

    country: Country
    slug: str  # Part of question ids that identifies country and clue.
    phrase: str  # Such as "the country whose capital is Ouagadougou".
    hops: tuple[Hop, ...] = ()  # Searches that lead to the country; empty if the phrase is its name.


DESCRIPTIONS = {row["noun"]: row for row in table("clues.tsv")}
"""Attribute → phrase of its clue, search terms before the value, and pattern of the values that need an article."""
_STOP_WORDS = {".at", ".be", ".by", ".do", ".in", ".is", ".it", ".to", ".ve", "Island"}
"""Values that BM25 cannot search for."""


def by_name(country: Country) -> Clue:
    """The country's own name, in place of a clue."""
    return Clue(country, country.code, country.the)


@cache
def fact_clues(country: Country) -> tuple[Clue, ...]:
    """Clues by facts that no other country or territory shares."""
    found = []
    for noun, row in DESCRIPTIONS.items():
        given = fact(country, noun)
        if given is None or given.value in _STOP_WORDS or gives_away(given) or not _is_unique(given):
            continue
        value = re.sub(r"^The ", "the ", given.value)
        described = row["phrase"].format(
            f"the {value}" if re.fullmatch(row["with_article"], value) else value
        )
        hop = Hop(f"{row['search']} {given.value}", given.passage.id, country.name, described)
        found.append(Clue(country, f"{country.code}-{slug(noun)}", described, (hop,)))
    return tuple(found)


def relation_clues(members: Sequence[Country], *, chained: bool = False) -> Iterator[Clue]:
    """Clues by a relation to another member, which is named or, if `chained`, described by a clue itself."""
    for source in members:
        for origin in fact_clues(source) if chained else [by_name(source)]:
            for given, target in _relations(source, members):
                hops = origin.hops
                if all(
                    hop.passage_id != given.passage.id and target.name not in origin.phrase for hop in hops
                ):
                    phrase = ATTRIBUTES[given.noun].need.format(origin.phrase)
                    identity = f"{target.code}-{slug(given.noun)}-{origin.slug}"
                    yield Clue(target, identity, phrase, (*hops, given.hop))


def _relations(source: Country, members: Sequence[Country]) -> Iterator[tuple[Fact, Country]]:
    for given in (fact(source, noun) for noun in RELATIONS):
        target = named(given.value) if given else None
        if given and target and target is not source and target in members:
            yield given, target


def gives_away(given: Fact) -> bool:
    """Whether the value shares the beginning of a word with the country's name or adjective."""
    adjective = fact(given.country, "nationality adjective")
    own = f"{given.country.name} {adjective.value if adjective else ''}"
    return bool(_beginnings(given.value) & _beginnings(own))


def _beginnings(text: str) -> set[str]:
    return {word[:4] for word in normalise(plain(text)).split() if len(word) > 3}


def _is_unique(given: Fact) -> bool:
    """Whether no other entry mentions the value in the same field, alone or in a list."""
    value = f" {normalise(given.value)} "
    return not any(value in text for code, text in _texts(given.noun) if code != given.country.code)


@cache
def _texts(noun: str) -> tuple[tuple[str, str], ...]:
    attribute = ATTRIBUTES[noun]
    texts = ((country.code, country.part(attribute.field, attribute.part)) for country in everywhere())
    return tuple((code, f" {normalise(text)} ") for code, text in texts if text)
