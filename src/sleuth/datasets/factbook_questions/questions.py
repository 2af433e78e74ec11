"""Question and family of questions, as every kind builds them."""

from collections.abc import Iterable, Iterator, Sequence

from sleuth.types import Hop, Question

Family = Iterator[Question]
"""Questions of one wording in random order; a kind draws from its families in turns."""


def question(kind: str, slug: str, text: str, answers: Sequence[str], hops: Sequence[Hop]) -> Question:
    """Factbook question; without answers it is unanswerable."""
    gold = tuple(dict.fromkeys(hop.passage_id for hop in hops))
    identity = f"factbook-{kind}-{slug}".replace(" ", "-")
    return Question(identity, text, tuple(answers), (), gold, bool(answers), tuple(hops), kind, "factbook")


def in_turns(families: Iterable[Family], most: int) -> list[Question]:
    """Up to `most` questions, one from each family in turn, without repeating an id or a text."""
    waiting, seen, found = list(families), set[str](), list[Question]()
    while waiting and len(found) < most:
        for family in list(waiting):
            new = next((q for q in family if q.id not in seen and q.text not in seen), None)
            if new is None:
                waiting.remove(family)
                continue
            seen |= {new.id, new.text}
            found.append(new)
    return found[:most]
