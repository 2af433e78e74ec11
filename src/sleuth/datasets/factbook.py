"""Factbook questions: multi-hop questions over the World Factbook, written by rule, with exact gold.

Countries are divided into train, dev and test by a hash of their code, and a question names only
facts of countries of one part, so no passage is gold in two splits. Everything is deterministic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Literal, get_args

from sleuth.datasets.base import BadRecord, DatasetReader
from sleuth.datasets.factbook_facts import BY_NAME, Attribute, Country, Fact, countries
from sleuth.errors import DataError
from sleuth.types import Hop, Question

Split = Literal["train", "dev", "test"]
SIZES: dict[Split, int] = {"train": 6000, "dev": 800, "test": 800}
SHARES = {"bridge": 0.45, "comparison": 0.20, "intersection": 0.10, "yesno": 0.15, "unanswerable": 0.10}

IDENTIFYING = {
    "capital": "whose capital is {}",
    "internet country code": "whose internet country code is {}",
    "national anthem": 'whose national anthem is "{}"',
    "highest point": "whose highest point is {}",
    "date of independence": "that became independent on {}",
}
"""Facts by which a question can name a country, if no other country shares them."""

ASKED = (
    "capital", "internet country code", "national anthem", "highest point", "date of independence", "national symbol",
    "currency", "government type", "total area", "coastline length", "population", "median age", "life expectancy",
    "number of airports", "population growth rate", "mean elevation",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two countries are compared by an attribute."""

    attribute: str
    which: str
    """"Which country has {which}, A or B?\""""
    adjective: str
    """"Is the {attribute} of A {adjective} than that of B?\""""


COMPARISONS = (
    Comparison("total area", "the larger total area", "larger"),
    Comparison("population", "the larger population", "larger"),
    Comparison("coastline length", "the longer coastline", "greater"),
    Comparison("median age", "the higher median age", "higher"),
    Comparison("life expectancy", "the higher life expectancy", "higher"),
    Comparison("number of airports", "more airports", "larger"),
    Comparison("mean elevation", "the higher mean elevation", "higher"),
    Comparison("population growth rate", "the higher population growth rate", "higher"),
)

NEVER_STATED = (
    "tallest building",
    "national dish",
    "oldest university",
    "longest bridge",
    "best-selling newspaper",
)
"""What the Factbook has no field for: asking for it has no evidence in the corpus."""


class FactbookReader(DatasetReader):
    """Questions of a split; the "path" is the split's name."""

    name = "factbook"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every question of the split. Raises DataError for an unknown split."""
        splits: tuple[Split, ...] = get_args(Split)
        split = next((s for s in splits if s == str(path)), None)
        if split is None:
            raise DataError(f"the Factbook has splits {', '.join(splits)}, not {str(path)!r}")
        yield from factbook_questions(split)


@cache
def factbook_questions(split: Split) -> tuple[Question, ...]:
    """The split's questions, kinds mixed evenly, so that the first n are like the whole."""
    members = [c for c in countries() if part_of(c.code) == split]
    chosen: list[tuple[float, Question]] = []
    for kind, share in SHARES.items():
        pool = {q.id: q for q in _GENERATORS[kind](members)}
        ranked = sorted(pool.values(), key=lambda q: _hash(q.id))[: round(share * SIZES[split])]
        # Evenly spaced ranks interleave the kinds.
        chosen += [((i + 0.5) / max(1, len(ranked)), q) for i, q in enumerate(ranked)]
    return tuple(q for _, q in sorted(chosen, key=lambda item: (item[0], item[1].id)))


def part_of(code: str) -> Split:
    """The split a country belongs to: about 60, 20 and 20 %."""
    place = _hash(f"country {code}") % 10
    return "train" if place < 6 else "dev" if place < 8 else "test"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@cache
def _owners(attribute: str, value: str) -> int:
    return sum(c.facts[attribute].value.lower() == value.lower() for c in countries() if attribute in c.facts)


def _identify(country: Country) -> Iterator[tuple[str, str, Fact]]:
    """(attribute, "the country whose …", fact) for every fact that names this country alone."""
    for name, phrase in IDENTIFYING.items():
        fact = country.facts.get(name)
        if fact is not None and _owners(name, fact.value) == 1:
            yield name, f"the country {phrase.format(fact.value)}", fact


def _question(identity: str, text: str, kind: str, answers: Sequence[str], hops: Sequence[Hop]) -> Question:
    gold = tuple(dict.fromkeys(hop.passage_id for hop in hops))
    return Question(
        f"factbook-{identity}", text, tuple(answers), (), gold, bool(answers), tuple(hops), kind, "factbook"
    )


def _lookup(country: Country, attribute: Attribute, fact: Fact) -> Hop:
    bare = country.the.removeprefix("the ")
    return Hop(
        f"{bare} {attribute.query}", fact.passage.id, fact.value, f"the {attribute.name} of {country.the}"
    )


def _first_hop(name: str, description: str, fact: Fact, country: Country) -> Hop:
    return Hop(f"{BY_NAME[name].query} {fact.value}", fact.passage.id, country.name, description)


def _bridge(members: Sequence[Country]) -> Iterator[Question]:
    for country in members:
        for name, description, clue in _identify(country):
            for target in ASKED:
                fact = country.facts.get(target)
                # The same passage would answer both hops: no second search is needed.
                if fact is None or fact.passage.id == clue.passage.id:
                    continue
                attribute = BY_NAME[target]
                hops = (_first_hop(name, description, clue, country), _lookup(country, attribute, fact))
                identity = f"bridge-{country.code}-{name}-{target}".replace(" ", "-")
                yield _question(
                    identity, attribute.question(description), "bridge", (fact.value, *fact.aliases), hops
                )


def _pairs(
    members: Sequence[Country],
) -> Iterator[tuple[Comparison, Attribute, Country, Country, Fact, Fact]]:
    """Ordered pairs whose figures differ by at least a tenth, so that rounding decides nothing."""
    for comparison in COMPARISONS:
        for a, b in permutations(members, 2):
            x, y = a.facts.get(comparison.attribute), b.facts.get(comparison.attribute)
            if x is None or y is None or x.number is None or y.number is None:
                continue
            if abs(x.number - y.number) >= 0.1 * max(abs(x.number), abs(y.number)) > 0:
                yield comparison, BY_NAME[comparison.attribute], a, b, x, y


def _comparison(members: Sequence[Country]) -> Iterator[Question]:
    for comparison, attribute, a, b, x, y in _pairs(members):
        assert x.number is not None
        assert y.number is not None
        winner = a if x.number > y.number else b
        text = f"Which country has {comparison.which}, {a.the} or {b.the}?"
        identity = f"comparison-{attribute.name}-{a.code}-{b.code}".replace(" ", "-")
        bare = winner.the.removeprefix("the ")
        yield _question(
            identity, text, "comparison", (bare,), (_lookup(a, attribute, x), _lookup(b, attribute, y))
        )


def _yes_no(members: Sequence[Country]) -> Iterator[Question]:
    for comparison, attribute, a, b, x, y in _pairs(members):
        assert x.number is not None
        assert y.number is not None
        identity = f"yesno-{attribute.name}-{a.code}-{b.code}".replace(" ", "-")
        answer = "yes" if x.number > y.number else "no"
        text = f"Is the {attribute.name} of {a.the} {comparison.adjective} than that of {b.the}?"
        yield _question(
            identity, text, "yesno", (answer,), (_lookup(a, attribute, x), _lookup(b, attribute, y))
        )


def _intersection(members: Sequence[Country]) -> Iterator[Question]:
    for a, b in combinations([c for c in members if c.border_passage], 2):
        shared = [name for name in a.borders if name in b.borders]
        if len(shared) != 1 or a.border_passage is None or b.border_passage is None:
            continue
        if shared[0].isupper():  # "US", "UAE": the files abbreviate here what they spell out elsewhere
            continue
        hops = [
            Hop(
                f"{c.the.removeprefix('the ')} land boundaries border countries",
                p.id,
                shared[0],
                f"the countries that border {c.the}",
            )
            for c, p in ((a, a.border_passage), (b, b.border_passage))
        ]
        for first, second in ((a, b), (b, a)):
            text = f"Which country borders both {first.the} and {second.the}?"
            order = hops if first is a else hops[::-1]
            yield _question(
                f"intersection-{first.code}-{second.code}", text, "intersection", (shared[0],), order
            )


def _unanswerable(members: Sequence[Country]) -> Iterator[Question]:
    for country in members:
        for name, description, clue in _identify(country):
            for target in NEVER_STATED:
                identity = f"unanswerable-{country.code}-{name}-{target}".replace(" ", "-")
                text = f"What is the {target} of {description}?"
                yield _question(
                    identity, text, "unanswerable", (), (_first_hop(name, description, clue, country),)
                )


_GENERATORS: dict[str, Callable[[Sequence[Country]], Iterator[Question]]] = {
    "bridge": _bridge,
    "comparison": _comparison,
    "intersection": _intersection,
    "yesno": _yes_no,
    "unanswerable": _unanswerable,
}
