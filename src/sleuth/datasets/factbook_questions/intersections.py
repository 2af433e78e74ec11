"""Intersection questions: the only thing that two lists of the Factbook share."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sleuth.datasets.factbook_questions import readings
from sleuth.datasets.factbook_questions.attributes import slug, table
from sleuth.datasets.factbook_questions.clues import gives_away
from sleuth.datasets.factbook_questions.facts import Country, Fact, fact, named, other_names
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.text import contains, normalise
from sleuth.types import Hop


class Listing(NamedTuple):
    """One row of listings.tsv: a field with a list, and the question for what two lists share."""

    slug: str
    field: str
    part: str  # Pattern of the sub-field's whole name; "" is the field's own text.
    items: str  # Function in readings.py that finds the items.
    text: str
    search: str
    need: str

    def of(self, country: Country) -> list[str]:
        """Items of the country's list; empty if one occurs twice."""
        found = getattr(readings, self.items)(country.part(self.field, self.part))
        items = [item if isinstance(item, str) else item[0] for item in found]
        return items if len({normalise(item) for item in items}) == len(items) else []

    def hop(self, country: Country, item: str) -> Hop | None:
        """Search for the list, which contributes `item`; None if the list is spread over several passages."""
        passage = country.evidence(self.field, self.of(country))
        query, need = f"{country.name} {self.search}", self.need.format(country.the)
        return Hop(query, passage.id, item, need) if passage else None


LISTINGS = [Listing(**row) for row in table("listings.tsv")]
BORDERS = LISTINGS[0]
NEIGHBORS = {
    "currency": "Which country borders {} and uses {} as its currency?",
    "former ruler": "Which country borders {} and gained independence from {}?",
    "government type": "Which country borders {} and is {}?",
    "official language": "Which country borders {} and has {} as its official language?",
    "largest religious group": "In which country that borders {} is {} the largest religious group?",
}
"""Attribute that distinguishes one neighbor of a country from the others → question."""


def intersections(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each listing and for each attribute of neighbors."""
    families = [_shared(listing, members, rng) for listing in LISTINGS]
    return families + [_neighbor(noun, members, rng) for noun in NEIGHBORS]


def _shared(listing: Listing, members: Sequence[Country], rng: random.Random) -> Family:
    listed = [(c, items) for c in members if (items := listing.of(c)) and listing.hop(c, "")]
    for _ in range(len(listed) ** 2 if len(listed) > 1 else 0):
        (a, some), (b, others) = rng.sample(listed, 2)
        shared = [item for item in some if normalise(item) in map(normalise, others)]
        if len(shared) != 1 or named(shared[0]) in (a, b):
            continue
        hops = [hop for country in (a, b) if (hop := listing.hop(country, shared[0]))]
        # An ocean's northern or southern half is accepted as the whole ocean.
        ocean = re.sub(r"^(North|South) (?=\w+ Ocean)", "", shared[0])
        answers = tuple(dict.fromkeys((shared[0], ocean, *other_names(shared[0]))))
        text = listing.text.format(a=a.the, b=b.the)
        yield question("intersection", f"{listing.slug}-{a.code}-{b.code}", text, answers, hops)


def _neighbor(noun: str, members: Sequence[Country], rng: random.Random) -> Family:
    found = [(c, single) for c in members for single in _distinct(noun, c) if single[1].country in members]
    for country, (item, given) in rng.sample(found, len(found)):
        hop, value = BORDERS.hop(country, item), _in_sentence(given.value, noun)
        if hop is None or not value:
            continue
        text = NEIGHBORS[noun].format(country.the, value)
        answers = tuple(dict.fromkeys((item, *given.country.names)))
        identity = f"neighbor-{country.code}-{given.country.code}-{slug(noun)}"
        yield question("intersection", identity, text, answers, (hop, given.hop))


def _distinct(noun: str, country: Country) -> Iterator[tuple[str, Fact]]:
    """Neighbors, as the list writes them, with a value that no other neighbor has."""
    items = BORDERS.of(country)
    facts = [given for item in items if (neighbor := named(item)) and (given := fact(neighbor, noun))]
    # A neighbor without a known value might share it, and then two answers would be right.
    if len(facts) < max(2, len(items)):
        return
    values = [normalise(given.value) for given in facts]
    for item, given, value in zip(items, facts, values, strict=True):
        alike = [other for other in values if contains(other, value) or contains(value, other)]
        if len(alike) == 1 and not gives_away(given):
            yield item, given


def _in_sentence(value: str, noun: str) -> str:
    """The value with its article: "an absolute monarchy", "the Netherlands"; "" if it does not fit a sentence."""
    if noun == "government type":
        # "Authoritarian" and "military regime" are not what a country is.
        is_noun = re.search(r"(republic|monarchy|democracy|state|federation)$", value)
        return f"{'an' if value[0] in 'aeio' else 'a'} {value}" if is_noun else ""
    ruler = named(value) if noun == "former ruler" else None
    is_union = noun == "former ruler" and value.endswith((" Union", " Empire"))
    return f"the {value}" if is_union or (ruler and ruler.the != ruler.name) else value
