"""Factbook questions with their gold passages among distractors: the "distractor" setting.

Distractors are near misses: the same field of another country, another field of a gold country,
in turns, from countries of the question's own split only, so that no passage is shown in two
splits. The order is shuffled for each question, or position alone would tell gold from the rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sleuth import factbook
from sleuth.datasets.base import BadRecord
from sleuth.datasets.factbook import FactbookReader, part_of
from sleuth.types import Passage, Question

GIVEN = 6
"""Passages of every question, two or three of them gold; the papers' data sets have 10 or 20."""


class FactbookDistractorReader(FactbookReader):
    """The questions of `FactbookReader`, each with `GIVEN` passages."""

    name = "factbook-distractor"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every question of the split, in the same order. Raises DataError for an unknown split."""
        for record in super().records(path):
            yield replace(record, passages=_given(record)) if isinstance(record, Question) else record


def _given(question: Question) -> tuple[Passage, ...]:
    """Gold passages and distractors, shuffled by a generator that depends on the question's id only."""
    entries = _entries()
    rng = random.Random(f"factbook given {question.id}")
    golds = [entries[gold] for gold in question.gold_ids]
    taken = {gold.entry for gold in golds}
    chosen = [gold.passage for gold in golds]
    turn = 0
    while len(chosen) < GIVEN:
        gold = golds[(turn // 2) % len(golds)]
        field, split = _field(gold.entry), part_of(_code(gold.entry))
        pool = _same_field(field, split) if turn % 2 == 0 else _same_country(_code(gold.entry))
        turn += 1
        free = [entry for entry in pool if entry not in taken]
        if free:
            entry = rng.choice(free)
            taken.add(entry)
            chosen.append(entries[entry].passage)
    rng.shuffle(chosen)
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A passage and the id of the entry that it is a piece of."""

    passage: Passage
    entry: str


@cache
def _entries() -> dict[str, _Placed]:
    """Every passage of the Factbook by its id; an entry's first passage has the entry's id."""
    return {
        passage.id: _Placed(passage, entry.id)
        for entry in factbook.entries()
        for passage in factbook.passages_of(entry)
    }


@cache
def _same_field(field: str, split: str) -> tuple[str, ...]:
    """Entries of one field in the countries of one split."""
    ids = (entry.id for entry in factbook.entries() if _field(entry.id) == field)
    return tuple(entry for entry in ids if part_of(_code(entry)) == split)


@cache
def _same_country(code: str) -> tuple[str, ...]:
    return tuple(entry.id for entry in factbook.entries() if entry.code == code)


def _code(entry: str) -> str:
    return entry.partition("/")[0]


def _field(entry: str) -> str:
    return entry.partition("/")[2]
