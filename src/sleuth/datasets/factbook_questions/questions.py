"""What every kind of question is put together with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sleuth.types import Hop, Question

Family = Iterator[Question]
"""Questions of one wording, in random order; kinds draw from their families in turns."""


def question(kind: str, slug: str, text: str, answers: Sequence[str], hops: Sequence[Hop]) -> Question:
    """A Factbook question; it is answerable exactly if there are answers."""
    gold = tuple(dict.fromkeys(hop.passage_id for hop in hops))
    identity = f"factbook-{kind}-{slug}".replace(" ", "-")
    return Question(identity, text, tuple(answers), (), gold, bool(answers), tuple(hops), kind, "factbook")


def in_turns(families: Iterable[Family], most: int) -> list[Question]:
    """Up to `most` questions, one from each family in turn, without repeating an id or a text."""
    waiting = list(families)
    ids: set[str] = set()
    texts: set[str] = set()
    found: list[Question] = []
    while waiting and len(found) < most:
        still = []
        for family in waiting:
            new = next((q for q in family if q.id not in ids and q.text not in texts), None)
            if new is None:
                continue
            still.append(family)
            ids.add(new.id)
            texts.add(new.text)
            found.append(new)
        waiting = still
    return found[:most]
