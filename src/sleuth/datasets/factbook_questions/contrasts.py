"""Comparisons: which of two countries has the larger or the smaller figure.

The wordings serve the yes/no questions too. Of two figures that are nearer than an estimate is
good for, nothing is asked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sleuth.datasets.factbook_questions.attributes import SPARSE, slug
from sleuth.datasets.factbook_questions.clues import fact_clues
from sleuth.datasets.factbook_questions.countries import Country
from sleuth.datasets.factbook_questions.facts import Fact, fact, is_stated
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.types import Hop

_MARGIN = 0.1
"""Figures nearer to one another than this share of the larger one are not compared: they are estimates."""


@dataclass(frozen=True)
class Contrast:
    """Wordings of one comparison; {} is the adjective, {a} and {b} are the countries."""

    noun: str
    more: str
    """Adjective that holds for the country with the larger figure."""
    less: str
    which: str
    whether: str

    @property
    def slug(self) -> str:
        """For ids."""
        return slug(self.noun)


class Side(NamedTuple):
    """One of the two countries as a question speaks of it."""

    fact: Fact
    phrase: str
    hops: tuple[Hop, ...]
    slug: str


def _of(noun: str, more: str = "higher", less: str = "lower") -> Contrast:
    which = f"Which country has the {{}} {noun}, {{a}} or {{b}}?"
    return Contrast(noun, more, less, which, f"Is the {noun} of {{a}} {{}} than that of {{b}}?")


def _many(noun: str, things: str) -> Contrast:
    which, whether = (
        f"Which country has {{}} {things}, {{a}} or {{b}}?",
        f"Does {{a}} have {{}} {things} than {{b}}?",
    )
    return Contrast(noun, "more", "fewer", which, whether)


CONTRASTS = (
    _of("total area", "larger", "smaller"),
    _of("population", "larger", "smaller"),
    _of("coastline", "longer", "shorter"),
    Contrast("land border", "longer", "shorter", "Which country has {} land borders, {a} or {b}?",
             "Does {a} have {} land borders than {b}?"),
    _of("median age"),
    _of("life expectancy"),
    _of("mean elevation"),
    _of("population growth rate"),
    _of("total fertility rate"),
    _of("birth rate"),
    _of("death rate"),
    _of("real GDP per capita"),
    _of("unemployment rate"),
    _of("literacy rate"),
    _of("Gini index"),
    _of("poverty rate"),
    _of("alcohol consumption per capita"),
    _of("hospital bed density"),
    _of("school life expectancy"),
    _of("external debt", "larger", "smaller"),
    _of("merchant marine", "larger", "smaller"),
    _many("number of airports", "airports"),
    _many("number of heliports", "heliports"),
    _many("number of ports", "ports"),
    _many("number of World Heritage Sites", "World Heritage Sites"),
    Contrast("length of railways", "longer", "shorter", "Which country has the {} railway network, {a} or {b}?",
             "Is the railway network of {a} {} than that of {b}?"),
    Contrast("height of the highest point", "higher", "lower", "Whose highest point is {}, that of {a} or that of {b}?",
             "Is the highest point of {a} {} than that of {b}?"),
    Contrast("date of independence", "later", "earlier", "Which country became independent {}, {a} or {b}?",
             "Did {a} become independent {} than {b}?"),
    Contrast("urban population", "larger", "smaller", "Which country has the {} share of urban population, {a} or {b}?",
             "Is the share of urban population in {a} {} than in {b}?"),
    Contrast("share of forest", "larger", "smaller", "Which country has the {} share of forest, {a} or {b}?",
             "Is the share of forest in {a} {} than in {b}?"),
    Contrast("share of internet users", "larger", "smaller",
             "Which country has the {} share of internet users, {a} or {b}?",
             "Is the share of internet users in {a} {} than in {b}?"),
    Contrast("rate of tobacco use", "higher", "lower", "Which country has the {} rate of tobacco use, {a} or {b}?",
             "Is the rate of tobacco use in {a} {} than in {b}?"),
    Contrast("tax revenue", "larger", "smaller", "Which country has the {} tax revenue as a share of GDP, {a} or {b}?",
             "Is the tax revenue of {a}, as a share of GDP, {} than that of {b}?"),
    Contrast("share of underweight children", "larger", "smaller",
             "Which country has the {} share of underweight children, {a} or {b}?",
             "Is the share of underweight children in {a} {} than in {b}?"),
    Contrast("military spending", "larger", "smaller",
             "Which country spends the {} share of its GDP on its military, {a} or {b}?",
             "Does {a} spend a {} share of its GDP on its military than {b}?"),
    Contrast("mothers' mean age at first birth", "older", "younger",
             "In which country are mothers {} at their first birth on average, {a} or {b}?",
             "Are mothers in {a} {} at their first birth on average than in {b}?"),
)  # fmt: skip


def comparisons(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """Two families for each contrast: the larger and the smaller figure is asked for."""
    return [
        _which(c, drawn(c.noun, members, rng), asks_more) for c in CONTRASTS for asks_more in (True, False)
    ]


def undecided(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """Comparisons that cannot be answered: for one of the two countries the Factbook has no figure."""
    sparse = {attribute.noun for attribute in SPARSE}
    return [_missing(contrast, members, rng) for contrast in CONTRASTS if contrast.noun in sparse]


def drawn(noun: str, members: Sequence[Country], rng: random.Random) -> Iterator[tuple[Side, Side]]:
    """Random pairs of members that have the fact; one country in four is described instead of named."""
    known = [found for country in members if (found := fact(country.code, noun)) is not None]
    for _ in range(len(known) ** 2 if len(known) > 1 else 0):
        a, b = rng.sample(known, 2)
        sides = [_side(a, rng, named=True), _side(b, rng, named=rng.random() >= 0.25)]
        rng.shuffle(sides)
        yield sides[0], sides[1]


def is_clear(contrast: Contrast, a: Fact, b: Fact) -> bool:
    """Whether the figures differ by more than an estimate may be wrong; dates by a year."""
    if a.number is None or b.number is None:
        return False
    if contrast.noun == "date of independence":
        return abs(a.number - b.number) >= 10_000
    return abs(a.number - b.number) >= _MARGIN * max(abs(a.number), abs(b.number)) > 0


def is_more(a: Fact, b: Fact) -> bool:
    """Whether the first figure is the larger one."""
    return (a.number or 0.0) > (b.number or 0.0)


def _side(known: Fact, rng: random.Random, *, named: bool) -> Side:
    country = known.country
    clues = [] if named else [c for c in fact_clues(country) if c.hops[0].passage_id != known.passage.id]
    if not clues:
        return Side(known, country.the, (known.hop(),), country.code)
    clue = rng.choice(clues)
    return Side(known, clue.phrase, (*clue.hops, known.hop()), f"{country.code}-{clue.slug}")


def _which(contrast: Contrast, pairs: Iterator[tuple[Side, Side]], asks_more: bool) -> Family:
    adjective = contrast.more if asks_more else contrast.less
    for a, b in pairs:
        if not is_clear(contrast, a.fact, b.fact):
            continue
        winner = a if is_more(a.fact, b.fact) == asks_more else b
        # "Which became independent earlier?" would be stiff.
        word = "first" if adjective == "earlier" else adjective
        text = contrast.which.format(word, a=a.phrase, b=b.phrase)
        country = winner.fact.country
        identity = f"{contrast.slug}-{adjective}-{a.slug}-{b.slug}"
        yield question("comparison", identity, text, (country.name, *country.aliases), (*a.hops, *b.hops))


def _missing(contrast: Contrast, members: Sequence[Country], rng: random.Random) -> Family:
    without = [country for country in members if not is_stated(country, contrast.noun)]
    known = [found for country in members if (found := fact(country.code, contrast.noun)) is not None]
    for _ in range(len(without) * len(known)):
        side, other = _side(rng.choice(known), rng, named=True), rng.choice(without)
        adjective = rng.choice((contrast.more, contrast.less))
        phrases = [side.phrase, other.the]
        rng.shuffle(phrases)
        text = contrast.which.format(adjective, a=phrases[0], b=phrases[1])
        identity = f"{contrast.slug}-{adjective}-{side.slug}-{other.code}"
        yield question("unanswerable", identity, text, (), side.hops)
