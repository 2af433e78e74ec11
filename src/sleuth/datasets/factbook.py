"""Factbook questions: multi-hop questions over the World Factbook, written by rule, with exact gold.

Countries are divided into train, dev and test by a hash of their code, and a question uses only
passages of countries of one part, so no passage is gold in two splits. Nothing depends on the
order of a set or dict or on a global random state; nothing is written to disk.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, cast, get_args

from sleuth.datasets.base import BadRecord, DatasetReader
from sleuth.datasets.factbook_questions.bridges import bridges, gaps
from sleuth.datasets.factbook_questions.contrasts import comparisons, undecided
from sleuth.datasets.factbook_questions.countries import Country, countries
from sleuth.datasets.factbook_questions.intersections import intersections
from sleuth.datasets.factbook_questions.questions import Family, in_turns
from sleuth.datasets.factbook_questions.yes_no import yes_no
from sleuth.errors import DataError
from sleuth.types import Question

Split = Literal["train", "dev", "test"]
SIZES: dict[Split, int] = {"train": 8000, "dev": 1000, "test": 1000}
"""Questions in each split, if the Factbook yields that many of every kind."""
SHARES = {"bridge": 0.45, "comparison": 0.20, "intersection": 0.10, "yesno": 0.15, "unanswerable": 0.10}
"""Share of each kind."""


def _unanswerable(members: Sequence[Country], rng: random.Random) -> list[Family]:
    return [*gaps(members, rng), *undecided(members, rng)]


_GENERATORS: dict[str, Callable[[Sequence[Country], random.Random], list[Family]]] = {
    "bridge": bridges,
    "comparison": comparisons,
    "intersection": intersections,
    "yesno": yes_no,
    "unanswerable": _unanswerable,
}


class FactbookReader(DatasetReader):
    """Questions of a split; the "path" is the split's name."""

    name = "factbook"

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every question of the split. Raises DataError for an unknown split or without the package."""
        split = str(path)
        if split not in get_args(Split):
            raise DataError(f"the Factbook has splits {', '.join(get_args(Split))}, not {split!r}")
        yield from _questions(cast(Split, split))


def factbook_questions(split: Split) -> list[Question]:
    """The split's questions, kinds and wordings mixed evenly, so that the first n are like the whole."""
    return list(_questions(split))


def part_of(code: str) -> Split:
    """The split a country belongs to: about 60, 20 and 20 %."""
    place = int.from_bytes(hashlib.sha256(f"country {code}".encode()).digest()[:8], "big") % 10
    return "train" if place < 6 else "dev" if place < 8 else "test"


@cache
def _questions(split: Split) -> tuple[Question, ...]:
    members = [country for country in countries() if part_of(country.code) == split]
    placed: list[tuple[float, Question]] = []
    for kind, generate in _GENERATORS.items():
        # A generator of its own for each kind, so that a change in one leaves the others as they are.
        rng = random.Random(f"factbook {split} {kind}")
        chosen = in_turns(generate(members, rng), round(SHARES[kind] * SIZES[split]))
        rng.shuffle(chosen)
        # Evenly spaced places interleave the kinds.
        placed += [((place + 0.5) / len(chosen), question) for place, question in enumerate(chosen)]
    return tuple(question for _, question in sorted(placed, key=lambda item: (item[0], item[1].id)))
