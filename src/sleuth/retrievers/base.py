"""Retriever: queries in, ranked passages out."""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

from sleuth.concurrency import Tick
from sleuth.errors import RetrievalError
from sleuth.types import Hit, Question


class Retriever(ABC):
    """Finds passages. Safe to share between episodes."""

    @abstractmethod
    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k passages for each query, best first; ties broken by passage id.

        Fewer than k if fewer match. Raises RetrievalError for k < 1 or an index that does
        not answer; an empty query finds nothing.
        """

    async def find(self, query: str, k: int) -> list[Hit]:
        """The best k passages for one query; concurrent callers share one batched search.

        The search runs in a thread, so that a slow index never delays other coroutines.
        """
        future: asyncio.Future[list[Hit]] = asyncio.get_running_loop().create_future()
        _TICK.add(Query(self, query, check_k(k), future))
        return await future

    def open(self) -> None:  # noqa: B027 - most retrievers have nothing to open
        """Load what searches need, such as an index or an encoder. Raises RetrievalError or EngineError early."""

    def for_question(self, question: Question) -> "Retriever":
        """The retriever to use for this question: itself, unless the passages come with the question."""
        return self

    @property
    def unplaced(self) -> bool:
        """Whether it, or a part of it, searches an index on disk that has not been named yet."""
        return False

    def at(self, path: str) -> Self:
        """A copy over the index directory `path`, set in every part that searches one; itself if none does."""
        return self

    def identity(self) -> dict[str, str]:
        """Engine, version, analyser, index hash: what a result file must name."""
        return {"retriever": type(self).__name__}


class Query(NamedTuple):
    """One coroutine's query and the future that waits for its hits."""

    retriever: Retriever
    text: str
    k: int
    future: asyncio.Future[list[Hit]]


def _search_together(queries: list[Query]) -> None:
    """Start one search for each retriever and k."""
    batches: dict[tuple[int, int], list[Query]] = defaultdict(list)
    for query in queries:
        batches[id(query.retriever), query.k].append(query)
    for batch in batches.values():
        _SEARCHES.add(task := asyncio.ensure_future(_search(batch)))
        task.add_done_callback(_SEARCHES.discard)


async def _search(batch: Sequence[Query]) -> None:
    """Search in a thread and resolve the futures; an error is raised for every query of the batch."""
    first = batch[0]
    try:
        found = await asyncio.to_thread(first.retriever.search, [query.text for query in batch], first.k)
        for query, hits in zip(batch, found, strict=True):
            if not query.future.done():
                query.future.set_result(hits)
    except Exception as error:  # raised again where each query is awaited
        for query in batch:
            if not query.future.done():
                query.future.set_exception(error)


_TICK: Tick[Query] = Tick(_search_together)
_SEARCHES: set[asyncio.Future[None]] = set()
"""Running searches; the event loop itself holds only weak references to its tasks."""


@dataclass(frozen=True)
class OnDisk(Retriever):
    """Settings that name an index on disk. Copies share the settings, not the open index."""

    path: str = ""
    """Index directory; "" = not set yet."""

    @property
    def unplaced(self) -> bool:
        return not self.path

    def at(self, path: str) -> Self:
        return replace(self, path=path)

    def __getstate__(self) -> dict[str, Any]:
        """The settings only: copies and other processes open the index themselves."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Around(Retriever):
    """Settings for changing what another retriever finds."""

    retriever: Retriever

    def open(self) -> None:
        self.retriever.open()

    @property
    def unplaced(self) -> bool:
        return self.retriever.unplaced

    def at(self, path: str) -> Self:
        return replace(self, retriever=self.retriever.at(path))

    def inner_identity(self) -> dict[str, str]:
        """The retriever's identity, each name under "of."."""
        return {f"of.{key}": value for key, value in self.retriever.identity().items()}


def check_k(k: object) -> int:
    """`k` as an int of at least 1, else RetrievalError. True and "3" are not numbers here."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise RetrievalError(f"k must be a whole number of at least 1, not {k!r}")
    return k


def check_queries(queries: Sequence[str]) -> list[str]:
    """`queries` as a list of texts, else RetrievalError. One text would be searched letter by letter."""
    if isinstance(queries, str):
        raise RetrievalError(f"queries must be a list of texts, not the text {queries[:80]!r}")
    for query in queries:
        if not isinstance(query, str):
            raise RetrievalError(f"a query must be text, not {query!r}")
    return list(queries)
