"""Bridge questions: find the country that a clue describes, then look up one of its facts.

Unanswerable ones have the same form and the same words, but the Factbook lacks that attribute of
that country. So the wording alone never gives away whether there is an answer.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import cycle

from sleuth.datasets.factbook_questions.attributes import ASKED, SPARSE, Attribute
from sleuth.datasets.factbook_questions.clues import Clue, fact_clues, relation_clues
from sleuth.datasets.factbook_questions.facts import Country, fact, is_stated
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.text import contains

_THREE_HOPS = 8  # Families with three hops; each attribute has one family with two.


def bridges(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each attribute, and some with clues that take two searches themselves."""
    single, double = _clues(members), list(relation_clues(members, chained=True))
    families = [_lookups([attribute], _shuffled(single, rng), rng) for attribute in ASKED]
    for _ in range(_THREE_HOPS):
        families.append(_lookups(rng.sample(ASKED, len(ASKED)), _shuffled(double, rng), rng))
    return families


def unanswerable_bridges(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each attribute that only some countries have."""
    clues = _clues(members)
    return [_gaps(attribute, _shuffled(clues, rng), rng) for attribute in SPARSE]


def _clues(members: Sequence[Country]) -> list[Clue]:
    return [*(clue for country in members for clue in fact_clues(country)), *relation_clues(members)]


def _shuffled(clues: Sequence[Clue], rng: random.Random) -> list[Clue]:
    return rng.sample(clues, len(clues))


def _lookups(attributes: Sequence[Attribute], clues: Iterable[Clue], rng: random.Random) -> Family:
    for clue, attribute in zip(clues, cycle(attributes)):
        text = rng.choice(attribute.ask).format(clue.phrase)
        if (given := fact(clue.country, attribute.noun)) is None:
            continue
        hops = (*clue.hops, given.hop)
        # A passage that serves two hops, or an answer that the question contains, needs no second search.
        if len({hop.passage_id for hop in hops}) == len(hops) and not contains(text, given.value):
            slug = f"{clue.slug}-{attribute.slug}"
            yield question("bridge", slug, text, (given.value, *given.aliases), hops)


def _gaps(attribute: Attribute, clues: Iterable[Clue], rng: random.Random) -> Family:
    for clue in clues:
        if not is_stated(clue.country, attribute.noun):
            text = rng.choice(attribute.ask).format(clue.phrase)
            yield question("unanswerable", f"{clue.slug}-{attribute.slug}", text, (), clue.hops)
