"""Bridge questions: find the country that a clue describes, then look up one of its facts.

Unanswerable ones are built in the same way and from the same words, but the Factbook says nothing
of that attribute for that country; so the wording alone never gives away whether there is an answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from sleuth.datasets.factbook_questions.attributes import ASKED, SPARSE, Attribute
from sleuth.datasets.factbook_questions.clues import Clue, chained_clues, fact_clues, relation_clues
from sleuth.datasets.factbook_questions.countries import Country
from sleuth.datasets.factbook_questions.facts import fact, is_stated
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.text import contains
from sleuth.types import Question

_CHAINS = 8
"""Families with three hops; there is one with two hops for each attribute."""


def bridges(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each attribute, and some over clues that take two searches themselves."""
    single = [*(clue for country in members for clue in fact_clues(country)), *relation_clues(members)]
    double = list(chained_clues(members))
    families = [_lookups(attribute, _shuffled(single, rng), rng) for attribute in ASKED]
    for _ in range(_CHAINS):
        families.append(_over(rng.sample(ASKED, len(ASKED)), _shuffled(double, rng), rng))
    return families


def gaps(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """Unanswerable questions: one family for each attribute that only some countries have."""
    single = [*(clue for country in members for clue in fact_clues(country)), *relation_clues(members)]
    return [_missing(attribute, _shuffled(single, rng), rng) for attribute in SPARSE]


def _shuffled(clues: Sequence[Clue], rng: random.Random) -> list[Clue]:
    return rng.sample(clues, len(clues))


def _lookups(attribute: Attribute, clues: Sequence[Clue], rng: random.Random) -> Family:
    for clue in clues:
        built = _bridge(attribute, clue, rng)
        if built is not None:
            yield built


def _over(attributes: Sequence[Attribute], clues: Sequence[Clue], rng: random.Random) -> Family:
    for number, clue in enumerate(clues):
        built = _bridge(attributes[number % len(attributes)], clue, rng)
        if built is not None:
            yield built


def _bridge(attribute: Attribute, clue: Clue, rng: random.Random) -> Question | None:
    known = fact(clue.country.code, attribute.noun)
    text = rng.choice(attribute.ask).format(clue.phrase)
    # A passage that serves both hops, or an answer that the question contains, needs no second search.
    if (
        known is None
        or known.passage.id in {hop.passage_id for hop in clue.hops}
        or contains(text, known.value)
    ):
        return None
    slug = f"{clue.country.code}-{clue.slug}-{attribute.slug}"
    return question("bridge", slug, text, known.answers, (*clue.hops, known.hop()))


def _missing(attribute: Attribute, clues: Sequence[Clue], rng: random.Random) -> Iterator[Question]:
    for clue in clues:
        if not is_stated(clue.country, attribute.noun):
            text = rng.choice(attribute.ask).format(clue.phrase)
            slug = f"{clue.country.code}-{clue.slug}-{attribute.slug}"
            yield question("unanswerable", slug, text, (), clue.hops)
