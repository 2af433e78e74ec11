"""Material: passages to write questions about, and pairs of passages that one rare name connects."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.types import Passage

Kind = Literal["single", "bridge", "comparison", "unanswerable"]
KINDS: tuple[Kind, ...] = ("single", "bridge", "comparison", "unanswerable")

LEAST_WORDS = 25
"""Words of the shortest passage that questions are written about."""
MOST_OF_A_NAME = 4
"""Most passages that a name occurs in and still connects two of them."""

_NAME = re.compile(
    r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+(?: (?:of |the |de |von )?[A-Z][\w'-]+)*|\b[a-z]\w*(?:[-_./]\w+)+\b"
)
"""Capitalised words within a sentence, and technical words such as "sources.list" or "apt-get"."""


@dataclass(frozen=True, slots=True)
class Material:
    """The gold passages of one question to be written."""

    kind: Kind
    passages: tuple[Passage, ...]
    name: str = ""
    """The name that connects two passages."""


def usable(passages: Iterable[Passage]) -> list[Passage]:
    """Passages with enough prose to ask about: long enough, and most characters are letters."""
    return [p for p in passages if len(p.text.split()) >= LEAST_WORDS and _letters(p.text) > 0.7]


def choose(passages: Sequence[Passage], kinds: Sequence[Kind], seed: int) -> Iterator[Material]:
    """Material in a random order fixed by the seed, the kinds by turns, until one of the kinds has no more."""
    shuffled = random.Random(seed).sample(list(passages), len(passages))
    pairs = connected(shuffled)
    random.Random(seed + 1).shuffle(pairs)
    half = len(pairs) // 2 if "comparison" in kinds and "bridge" in kinds else len(pairs)
    step = 2 if "single" in kinds and "unanswerable" in kinds else 1
    rests: dict[Kind, Iterator[Material]] = {
        "single": (Material("single", (p,)) for p in shuffled[::step]),
        "unanswerable": (Material("unanswerable", (p,)) for p in shuffled[step - 1 :: step]),
        "bridge": (Material("bridge", (a, b), name) for a, b, name in pairs[:half]),
        "comparison": (Material("comparison", (a, b), name) for a, b, name in pairs[-half or None :]),
    }
    live = list(dict.fromkeys(kinds))
    while live:
        for kind in list(live):
            if (material := next(rests[kind], None)) is None:
                live.remove(kind)
            else:
                yield material


def connected(passages: Sequence[Passage]) -> list[tuple[Passage, Passage, str]]:
    """Pairs of passages with different titles that one rare name connects; each passage is in one pair at most."""
    holders: dict[str, list[int]] = defaultdict(list)
    for place, passage in enumerate(passages):
        for name in set(_NAME.findall(passage.text)):
            holders[name].append(place)
    rare = sorted(
        (
            (name, found)
            for name, found in holders.items()
            if 2 <= len(found) <= MOST_OF_A_NAME and len(name) > 3
        ),
        key=lambda item: (len(item[1]), item[0]),
    )
    used: set[int] = set()
    pairs = []
    for name, found in rare:
        free = [place for place in found if place not in used]
        first = next(iter(free), None)
        second = next((place for place in free[1:] if passages[place].title != passages[free[0]].title), None)
        if first is not None and second is not None:
            used |= {first, second}
            pairs.append((passages[first], passages[second], name))
    return pairs


def _letters(text: str) -> float:
    return sum(letter.isalpha() or letter.isspace() for letter in text) / max(1, len(text))
