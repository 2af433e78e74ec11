"""Retrievers that always find the same passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.retrievers.base import Retriever, check_k
from sleuth.types import Hit, Passage


@dataclass(frozen=True)
class Fixed(Retriever):
    """Passages with one-letter ids, whose text is the id twice; an empty query finds nothing."""

    ids: str
    asked: tuple[list[int], ...] = ()
    """A list that gets the k of every search."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        for log in self.asked:
            log.append(k)
        hits = [Hit(Passage(name, "", f"{name} {name}"), 9.0 - i) for i, name in enumerate(self.ids)]
        return [hits[: check_k(k)] if query else [] for query in queries]


@dataclass(frozen=True)
class Shown(Retriever):
    """Finds all its passages whatever is asked."""

    passages: tuple[Passage, ...]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[Hit(passage, 1.0) for passage in self.passages] for _ in queries]
