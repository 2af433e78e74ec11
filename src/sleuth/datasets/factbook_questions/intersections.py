"""Intersections: the one thing that two lists of the Factbook have in common."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sleuth.datasets.factbook_questions.attributes import slug
from sleuth.datasets.factbook_questions.clues import gives_away
from sleuth.datasets.factbook_questions.countries import Country, named
from sleuth.datasets.factbook_questions.facts import Fact, fact, pieces
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.datasets.factbook_questions.readings import borders, partners, same_country
from sleuth.text import contains, normalise
from sleuth.types import Hop, Question

_WATER = re.compile(
    r"(?:(?:Gulf|Bay|Strait) of [A-Z]\w+(?: [A-Z]\w+)?|(?:[A-Z]\w+ )+(?:Sea|Ocean|Gulf|Channel)|Bay of [A-Z]\w+)"
)


@dataclass(frozen=True)
class Listing:
    """A field that lists things, and the question for what two lists share."""

    slug: str
    field: str
    part: str
    items: Callable[[str], list[str]]
    text: str
    search: str
    need: str


def _border_names(text: str) -> list[str]:
    return [name for name, _ in borders(text)]


def _partner_names(text: str) -> list[str]:
    return [name for name, _ in partners(text)]


def waters(text: str) -> list[str]:
    """Seas and oceans in "…, bordering the Baltic Sea and the Gulf of Finland, between …"."""
    match = re.search(r"bordering (.+?)(?:, (?:between|north|south|east|west|about|as well)|;|$)", text)
    return _WATER.findall(match.group(1)) if match else []


def official_languages(text: str) -> list[str]:
    """Languages marked official."""
    return re.findall(
        r"(?:^|, |and )([A-Z][a-zA-Z]+)(?: [\d.]+%)? \(official\)", text.split("note", maxsplit=1)[0]
    )


LISTINGS = (
    Listing("borders", "Land boundaries", "border countries", _border_names,
            "Which country borders both {a} and {b}?", "land boundaries", "the neighbors of {}"),
    Listing("waters", "Location", "", waters,
            "Which body of water do {a} and {b} both border?", "location", "the waters that {} borders"),
    Listing("languages", "Languages", "|Languages", official_languages,
            "Which language is official in both {a} and {b}?", "languages", "the official languages of {}"),
    Listing("exports", "Exports - partners", "", _partner_names,
            "Which country is among the main export partners of both {a} and {b}?", "exports partners",
            "the main export partners of {}"),
    Listing("imports", "Imports - partners", "", _partner_names,
            "Which country is among the main import partners of both {a} and {b}?", "imports partners",
            "the main import partners of {}"),
)  # fmt: skip

NEIGHBORS = {
    "currency": "Which country borders {} and uses {} as its currency?",
    "former ruler": "Which country borders {} and gained independence from {}?",
    "government type": "Which country borders {} and is {}?",
    "official language": "Which country borders {} and has {} as its official language?",
    "largest religious group": "In which country that borders {} is {} the largest religious group?",
}
"""Attributes that single out one of a country's neighbors."""


def intersections(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each listing and for each attribute of neighbors."""
    families = [_shared(listing, members, rng) for listing in LISTINGS]
    return families + [_neighbor(noun, members, rng) for noun in NEIGHBORS]


def _shared(listing: Listing, members: Sequence[Country], rng: random.Random) -> Iterator[Question]:
    known = [
        (c, items, hop) for c in members if (items := _items(listing, c)) and (hop := _hop(listing, c, items))
    ]
    for _ in range(len(known) ** 2):
        if len(known) < 2:
            return
        (a, some, first), (b, others, second) = rng.sample(known, 2)
        common = [item for item in some if normalise(item) in map(normalise, others)]
        if len(common) != 1 or named(common[0]) in (a, b):
            continue
        hops = (Hop(first[0], first[1], common[0], first[2]), Hop(second[0], second[1], common[0], second[2]))
        # An ocean's northern or southern half is asked for by its whole name too.
        ocean = re.sub(r"^(North|South) (?=\w+ Ocean)", "", common[0])
        answers = tuple(dict.fromkeys((common[0], ocean, *same_country(common[0]))))
        text = listing.text.format(a=a.the, b=b.the)
        yield question("intersection", f"{listing.slug}-{a.code}-{b.code}", text, answers, hops)


def _items(listing: Listing, country: Country) -> list[str]:
    items = listing.items(country.part(listing.field, listing.part))
    return items if len({normalise(item) for item in items}) == len(items) else []


def _hop(listing: Listing, country: Country, items: Sequence[str]) -> tuple[str, str, str] | None:
    """Search, passage and need; None if the list is spread over several passages."""
    passages = pieces(country.fields[listing.field])
    longest = 30 if listing.slug == "borders" else 60
    whole = next((p for p in passages if all(contains(p.text, item) for item in items)), None)
    if whole is None or len(whole.text.split()) > longest:
        return None
    return f"{country.name} {listing.search}", whole.id, listing.need.format(country.the)


def _neighbor(noun: str, members: Sequence[Country], rng: random.Random) -> Iterator[Question]:
    found = [(c, single) for c in members for single in _singled_out(noun, c) if single[1].country in members]
    for country, (item, neighbor) in rng.sample(found, len(found)):
        hop = _hop(LISTINGS[0], country, _items(LISTINGS[0], country))
        value = _in_sentence(neighbor.value, noun)
        if hop is None or not value:
            continue
        search, passage_id, need = hop
        text = NEIGHBORS[noun].format(country.the, value)
        answers = tuple(dict.fromkeys((item, neighbor.country.name, *neighbor.country.aliases)))
        identity = f"neighbor-{country.code}-{neighbor.country.code}-{slug(noun)}"
        hops = (Hop(search, passage_id, item, need), neighbor.hop())
        yield question("intersection", identity, text, answers, hops)


def _singled_out(noun: str, country: Country) -> Iterator[tuple[str, Fact]]:
    """Neighbors, as the list calls them, with a value that none of the others has."""
    items = _items(LISTINGS[0], country)
    known = [fact(neighbor.code, noun) if (neighbor := named(item)) else None for item in items]
    values = [normalise(each.value) for each in known if each is not None]
    # A neighbor of which the value is not known might share it, and then two answers would be right.
    if len(values) < max(2, len(items)):
        return
    for item, each, value in zip(items, known, values, strict=True):
        alone = sum(contains(other, value) or contains(value, other) for other in values) == 1
        if each is not None and alone and not gives_away(each):
            yield item, each


def _in_sentence(value: str, noun: str) -> str:
    """The value with its article: "an absolute monarchy", "the Netherlands"; "" if it does not fit a sentence."""
    if noun == "former ruler":
        ruler = named(value)
        with_article = value.endswith((" Union", " Empire")) or (
            ruler is not None and ruler.the != ruler.name
        )
        return f"the {value}" if with_article else value
    if noun != "government type":
        return value
    # "Authoritarian" and "military regime" are not what a country is.
    is_noun = re.search(r"(republic|monarchy|democracy|state|federation)$", value)
    return f"{'an' if value[0] in 'aeio' else 'a'} {value}" if is_noun else ""
