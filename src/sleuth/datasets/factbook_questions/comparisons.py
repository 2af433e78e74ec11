"""Questions about two countries: which has the larger figure, yes/no questions, and unanswerable comparisons.

Figures that differ by less than the accuracy of an estimate are not compared.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sleuth.datasets.factbook_questions.attributes import SPARSE, slug, table
from sleuth.datasets.factbook_questions.clues import Clue, by_name, fact_clues
from sleuth.datasets.factbook_questions.facts import Country, Fact, facts, is_stated
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.datasets.factbook_questions.readings import plain
from sleuth.text import contains, normalise
from sleuth.types import Hop, Question

_MARGIN = 0.1  # Smallest difference of two compared figures, as a share of the larger one.
_YEAR = 10_000  # Smallest difference of two compared dates; the number of a date is YYYYMMDD.
_DESCRIBED = 0.25  # Share of pairs in which one country is described instead of named.
_ROUNDS = 3  # Families for each of SAME and STATEMENTS, which are few in comparison with the contrasts.


class Contrast(NamedTuple):
    """One row of contrasts.tsv: wordings, in which {} is the adjective, {a} and {b} are the countries."""

    noun: str
    more: str  # Adjective of the country with the larger figure.
    less: str
    which: str
    whether: str


class Statement(NamedTuple):
    """Sub-field that answers a question with yes or no."""

    slug: str
    text: str
    field: str
    part: str
    answers: dict[str, str]  # Answer → pattern of the text; texts that match neither are left out.
    need: str


class Side(NamedTuple):
    """One of the two countries and its figure."""

    fact: Fact
    clue: Clue

    @property
    def hops(self) -> tuple[Hop, ...]:
        return (*self.clue.hops, self.fact.hop)


CONTRASTS = [Contrast(**row) for row in table("contrasts.tsv")]
SAME = {
    "currency": "Do {a} and {b} use the same currency?",
    "government type": "Do {a} and {b} have the same type of government?",
    "official language": "Do {a} and {b} have the same official language?",
    "former ruler": "Did {a} and {b} gain independence from the same country?",
    "main export partner": "Do {a} and {b} have the same main export partner?",
    "main import partner": "Do {a} and {b} have the same main import partner?",
}
"""Attribute that two countries may share → question."""
STATEMENTS = (
    Statement("dual-citizenship", "Does {} recognize dual citizenship?", "Citizenship", "dual citizenship recognized",
              {"yes": "yes", "no": "no"}, "the rule on dual citizenship of {}"),
    Statement("citizenship-by-birth", "Does {} grant citizenship by birth?", "Citizenship", "citizenship by birth",
              {"yes": "yes", "no": "no"}, "the rule on citizenship by birth of {}"),
    Statement("landlocked", "Is {} landlocked?", "Coastline", "",
              {"yes": r"0 km \(landlocked\)", "no": r"[1-9][\d,.]* km"}, "the length of the coastline of {}"),
)  # fmt: skip


def comparisons(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """Two families for each contrast: which country has the larger figure, and which the smaller."""
    return [_which(contrast, members, more, rng) for contrast in CONTRASTS for more in (True, False)]


def unanswerable_comparisons(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """One family for each statistic that the Factbook lacks for some countries: one of the two has none."""
    sparse = {attribute.noun for attribute in SPARSE}
    return [_missing(contrast, members, rng) for contrast in CONTRASTS if contrast.noun in sparse]


def yes_no(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """A family of yes and a family of no for each wording, so that the answers are balanced."""
    families = [_whether(one, members, answer, rng) for one in CONTRASTS for answer in ("yes", "no")]
    for _ in range(_ROUNDS):
        families += [_same(noun, members, answer, rng) for noun in SAME for answer in ("yes", "no")]
        families += [_stated(one, members, answer, rng) for one in STATEMENTS for answer in ("yes", "no")]
    return families


def _pairs(noun: str, members: Sequence[Country], rng: random.Random) -> Iterator[tuple[Side, Side]]:
    known = facts(noun, members)
    for _ in range(len(known) ** 2 if len(known) > 1 else 0):
        a, b = rng.sample(known, 2)
        other = _described(b, rng) if rng.random() < _DESCRIBED else Side(b, by_name(b.country))
        sides = [Side(a, by_name(a.country)), other]
        rng.shuffle(sides)
        yield sides[0], sides[1]


def _described(given: Fact, rng: random.Random) -> Side:
    """The country by a clue from another passage, or by its name if it has none."""
    clues = [clue for clue in fact_clues(given.country) if clue.hops[0].passage_id != given.passage.id]
    return Side(given, rng.choice(clues) if clues else by_name(given.country))


def _unequal(noun: str, members: Sequence[Country], rng: random.Random) -> Iterator[tuple[Side, Side, bool]]:
    """Pairs whose figures differ clearly, and whether the first figure is the larger one."""
    for a, b in _pairs(noun, members, rng):
        x, y = a.fact.number or 0.0, b.fact.number or 0.0
        least = _YEAR if noun == "date of independence" else _MARGIN * max(x, y)
        if abs(x - y) >= least > 0:
            yield a, b, x > y


def _which(contrast: Contrast, members: Sequence[Country], asks_more: bool, rng: random.Random) -> Family:
    adjective = contrast.more if asks_more else contrast.less
    # "Which became independent earlier?" would be stiff.
    word = "first" if adjective == "earlier" else adjective
    for a, b, is_more in _unequal(contrast.noun, members, rng):
        text = contrast.which.format(word, a=a.clue.phrase, b=b.clue.phrase)
        winner = (a if is_more == asks_more else b).fact.country
        yield _of_two("comparison", f"{slug(contrast.noun)}-{adjective}", text, winner.names, a, b)


def _whether(contrast: Contrast, members: Sequence[Country], answer: str, rng: random.Random) -> Family:
    for a, b, is_more in _unequal(contrast.noun, members, rng):
        adjective = contrast.more if is_more == (answer == "yes") else contrast.less
        text = contrast.whether.format(adjective, a=a.clue.phrase, b=b.clue.phrase)
        yield _of_two("yesno", f"{slug(contrast.noun)}-{adjective}", text, (answer,), a, b)


def _missing(contrast: Contrast, members: Sequence[Country], rng: random.Random) -> Family:
    without = [country for country in members if not is_stated(country, contrast.noun)]
    known = facts(contrast.noun, members)
    for _ in range(len(without) * len(known)):
        given, other = rng.choice(known), rng.choice(without)
        adjective = rng.choice((contrast.more, contrast.less))
        phrases = [given.country.the, other.the]
        rng.shuffle(phrases)
        text = contrast.which.format(adjective, a=phrases[0], b=phrases[1])
        identity = f"{slug(contrast.noun)}-{adjective}-{given.country.code}-{other.code}"
        yield question("unanswerable", identity, text, (), (given.hop,))


def _same(noun: str, members: Sequence[Country], answer: str, rng: random.Random) -> Family:
    for pair in _pairs(noun, members, rng):
        # A described country comes last: "Do the country whose … and Peru have …" would be hard to read.
        a, b = sorted(pair, key=lambda side: len(side.hops))
        x, y = (normalise(plain(side.fact.value)) for side in (a, b))
        if (x == y) if answer == "yes" else _differ(noun, x, y):
            text = SAME[noun].format(a=a.clue.phrase, b=b.clue.phrase)
            yield _of_two("yesno", f"same-{slug(noun)}", text, (answer,), a, b)


def _differ(noun: str, x: str, y: str) -> bool:
    """Whether two values are clearly different; "federal presidential republic" is a presidential one."""
    if noun == "government type":
        return not contains(x, y) and not contains(y, x)
    return not set(x.split()) & set(y.split())


def _of_two(kind: str, topic: str, text: str, answers: Sequence[str], *sides: Side) -> Question:
    identity = "-".join((topic, *(side.clue.slug for side in sides)))
    return question(kind, identity, text, answers, [hop for side in sides for hop in side.hops])


def _stated(statement: Statement, members: Sequence[Country], answer: str, rng: random.Random) -> Family:
    clues = [clue for country in members for clue in fact_clues(country)]
    for clue in rng.sample(clues, len(clues)):
        stated = clue.country.part(statement.field, statement.part)
        if not re.fullmatch(statement.answers[answer], stated):
            continue
        hop = _hop(statement, clue.country, stated)
        if hop and hop.passage_id not in {h.passage_id for h in clue.hops}:
            text = statement.text.format(clue.phrase)
            yield question("yesno", f"{statement.slug}-{clue.slug}", text, (answer,), (*clue.hops, hop))


def _hop(statement: Statement, country: Country, stated: str) -> Hop | None:
    """Search for the statement; its answer includes the sub-field's name, since "yes" alone is in many passages."""
    value = f"{statement.part}: {stated}" if statement.part else stated
    passage = country.evidence(statement.field, [value])
    search = f"{country.name} {(statement.part or statement.field).lower()}"
    return Hop(search, passage.id, value, statement.need.format(country.the)) if passage else None
