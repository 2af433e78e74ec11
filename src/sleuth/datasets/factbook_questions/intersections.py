"""Intersection questions: the only thing that two lists of the Factbook share."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sleuth.datasets.factbook_questions.attributes import slug
from sleuth.datasets.factbook_questions.clues import gives_away
from sleuth.datasets.factbook_questions.facts import Country, Fact, fact, named, other_names
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.datasets.factbook_questions.readings import borders, partners
from sleuth.text import contains, normalise
from sleuth.types import Hop

_WATER = r"(?:Gulf|Bay|Strait) of [A-Z]\w+(?: [A-Z]\w+)?|(?:[A-Z]\w+ )+(?:Sea|Ocean|Gulf|Channel)"


def waters(text: str) -> list[str]:
    """Seas and oceans in "…, bordering the Baltic Sea and the Gulf of Finland, between …"."""
    found = re.search(r"bordering (.+?)(?:, (?:between|north|south|east|west|about|as well)|;|$)", text)
    return re.findall(_WATER, found[1]) if found else []


def official_languages(text: str) -> list[str]:
    """Languages marked official."""
    pattern = r"(?:^|, |and )([A-Z][a-zA-Z]+)(?: [\d.]+%)? \(official\)"
    return re.findall(pattern, text.split("note", maxsplit=1)[0])


class Listing(NamedTuple):
    """Field with a list, and the question for what two lists share."""

    slug: str
    field: str
    part: str
    items: Callable[[str], list[str]]
    text: str
    search: str
    need: str

    def of(self, country: Country) -> list[str]:
        """Items of the country's list; empty if one occurs twice."""
        items = self.items(country.part(self.field, self.part))
        return items if len({normalise(item) for item in items}) == len(items) else []

    def hop(self, country: Country, item: str) -> Hop | None:
        """Search for the list, which contributes `item`; None if the list is spread over several passages."""
        passage = country.evidence(self.field, self.of(country))
        query, need = f"{country.name} {self.search}", self.need.format(country.the)
        return Hop(query, passage.id, item, need) if passage else None


BORDERS = Listing("borders", "Land boundaries", "border countries", lambda text: [name for name, _ in borders(text)],
                  "Which country borders both {a} and {b}?", "land boundaries", "the neighbors of {}")  # fmt: skip
LISTINGS = (
    BORDERS,
    Listing("waters", "Location", "", waters,
            "Which body of water do {a} and {b} both border?", "location", "the waters that {} borders"),
    Listing("languages", "Languages", "|Languages", official_languages,
            "Which language is official in both {a} and {b}?", "languages", "the official languages of {}"),
    *(Listing(f"{trade}s", f"{trade.title()}s - partners", "", lambda text: [name for name, _ in partners(text)],
              f"Which country is among the main {trade} partners of both {{a}} and {{b}}?", f"{trade}s partners",
              f"the main {trade} partners of {{}}") for trade in ("export", "import")),
)  # fmt: skip

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
