"""Questions to be answered with yes or no, as many of one as of the other."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sleuth.datasets.factbook_questions.attributes import slug
from sleuth.datasets.factbook_questions.clues import fact_clues
from sleuth.datasets.factbook_questions.contrasts import CONTRASTS, Contrast, Side, drawn, is_clear, is_more
from sleuth.datasets.factbook_questions.countries import Country, plain
from sleuth.datasets.factbook_questions.facts import pieces
from sleuth.datasets.factbook_questions.questions import Family, question
from sleuth.text import contains, normalise
from sleuth.types import Hop

ALIKE = {
    "currency": "Do {a} and {b} use the same currency?",
    "government type": "Do {a} and {b} have the same type of government?",
    "official language": "Do {a} and {b} have the same official language?",
    "former ruler": "Did {a} and {b} gain independence from the same country?",
    "main export partner": "Do {a} and {b} have the same main export partner?",
    "main import partner": "Do {a} and {b} have the same main import partner?",
}
"""Attributes that two countries may share."""


class Statement(NamedTuple):
    """A sub-field that settles a question with yes or no."""

    slug: str
    text: str
    field: str
    part: str
    yes: str
    """Pattern of a text that means yes; what matches neither pattern is not asked about."""
    no: str
    need: str


STATEMENTS = (
    Statement("dual-citizenship", "Does {} recognize dual citizenship?", "Citizenship", "dual citizenship recognized",
              "yes", "no", "the rule on dual citizenship of {}"),
    Statement("citizenship-by-birth", "Does {} grant citizenship by birth?", "Citizenship", "citizenship by birth",
              "yes", "no", "the rule on citizenship by birth of {}"),
    Statement("landlocked", "Is {} landlocked?", "Coastline", "", r"0 km \(landlocked\)", r"[1-9][\d,.]* km",
              "the length of the coastline of {}"),
)  # fmt: skip


def yes_no(members: Sequence[Country], rng: random.Random) -> list[Family]:
    """A family of yes and one of no for each wording, side by side, so that the answers are balanced."""
    families: list[Family] = []
    for contrast in CONTRASTS:
        families += [
            _whether(contrast, drawn(contrast.noun, members, rng), answer) for answer in ("yes", "no")
        ]
    for _ in range(3):  # few wordings, and unlike those of comparisons: they come up more often
        for noun in ALIKE:
            families += [_alike(noun, drawn(noun, members, rng), answer) for answer in ("yes", "no")]
        for statement in STATEMENTS:
            families += [_stated(statement, members, answer, rng) for answer in ("yes", "no")]
    return families


def _whether(contrast: Contrast, pairs: Iterator[tuple[Side, Side]], answer: str) -> Family:
    for a, b in pairs:
        if is_clear(contrast, a.fact, b.fact):
            adjective = contrast.more if is_more(a.fact, b.fact) == (answer == "yes") else contrast.less
            text = contrast.whether.format(adjective, a=a.phrase, b=b.phrase)
            identity = f"{contrast.slug}-{adjective}-{a.slug}-{b.slug}"
            yield question("yesno", identity, text, (answer,), (*a.hops, *b.hops))


def _alike(noun: str, pairs: Iterator[tuple[Side, Side]], answer: str) -> Family:
    for pair in pairs:
        # The one that is described comes last: "Do the country whose … and Peru have …" stumbles.
        a, b = sorted(pair, key=lambda side: len(side.hops))
        x, y = (normalise(plain(side.fact.value)) for side in (a, b))
        if (x == y) if answer == "yes" else _differ(noun, x, y):
            text = ALIKE[noun].format(a=a.phrase, b=b.phrase)
            identity = f"same-{slug(noun)}-{a.slug}-{b.slug}"
            yield question("yesno", identity, text, (answer,), (*a.hops, *b.hops))


def _differ(noun: str, x: str, y: str) -> bool:
    """Whether two values are clearly different things; "federal presidential republic" is a presidential one."""
    if noun == "government type":
        return not contains(x, y) and not contains(y, x)
    return not set(x.split()) & set(y.split())


def _stated(statement: Statement, members: Sequence[Country], answer: str, rng: random.Random) -> Family:
    clues = [clue for country in members for clue in fact_clues(country)]
    for clue in rng.sample(clues, len(clues)):
        said = clue.country.part(statement.field, statement.part)
        hop = _hop(statement, clue.country, said)
        matches = re.fullmatch(statement.yes if answer == "yes" else statement.no, said)
        if matches and hop is not None and hop.passage_id not in {h.passage_id for h in clue.hops}:
            text = statement.text.format(clue.phrase)
            identity = f"{statement.slug}-{clue.country.code}-{clue.slug}"
            yield question("yesno", identity, text, (answer,), (*clue.hops, hop))


def _hop(statement: Statement, country: Country, said: str) -> Hop | None:
    """The search for the statement; its answer is the statement itself: "yes" alone says nothing in a passage."""
    value = f"{statement.part}: {said}" if statement.part else said
    entry = country.fields.get(statement.field)
    passage = next((p for p in pieces(entry) if contains(p.text, value)), None) if entry and said else None
    if passage is None:
        return None
    search = f"{country.name} {statement.part or statement.field}".lower()
    return Hop(
        search.replace(country.name.lower(), country.name),
        passage.id,
        value,
        statement.need.format(country.the),
    )
