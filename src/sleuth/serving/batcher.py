"""Batcher: queries of concurrent requests are searched together, in a thread.

Requests that arrive during a search form the next batch, so a lone request never waits. The queue is bounded.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from sys import getsizeof

from cachetools import LRUCache

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.serving import metrics
from sleuth.serving.replies import RequestError
from sleuth.types import Hit

Found = Sequence[Sequence[Hit]]  # Hits of each query.


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A request in the queue."""

    queries: Sequence[str]
    k: int
    found: asyncio.Future[list[Sequence[Hit]]]


class Batcher:
    """Queue between the requests of one event loop and a retriever. One search runs at a time."""

    def __init__(self, retriever: Retriever, max_batch: int, max_waiting: int, cache_bytes: int) -> None:
        """`max_batch`: queries after which a batch takes no further request; see Limits."""
        self._retriever = retriever
        self._max_batch, self._max_waiting = max_batch, max_waiting
        self._cache: LRUCache[tuple[str, int], Sequence[Hit]] = LRUCache(cache_bytes, _num_bytes)
        self._queue: deque[_Waiting] = deque()
        self._num_waiting = 0
        self._worker: asyncio.Task[None] | None = None

    async def search(self, queries: Sequence[str], k: int) -> list[Sequence[Hit]]:
        """The best k passages for each query.

        Raises RequestError 503 if the queue is full, and whatever the retriever raises. A request larger than the
        queue is accepted if the queue is empty.
        """
        metrics.QUERIES.inc(len(queries))
        found = self._cached(queries, k)
        if len(found) == len(set(queries)):
            return [found[query] for query in queries]
        if self._queue and self._num_waiting + len(queries) > self._max_waiting:
            raise RequestError(503, f"too busy: {self._num_waiting} queries are waiting; try again")
        waiting = _Waiting(queries, k, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._num_waiting += len(queries)
        metrics.WAITING.set(self._num_waiting)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await waiting.found

    async def _work(self) -> None:
        while self._queue:
            batch = self._next_batch()
            for k in {waiting.k for waiting in batch}:
                await self._answer([waiting for waiting in batch if waiting.k == k], k)

    def _next_batch(self) -> list[_Waiting]:
        """Requests in order of arrival, without those that were cancelled meanwhile."""
        batch: list[_Waiting] = []
        size = 0
        while self._queue and size < self._max_batch:
            waiting = self._queue.popleft()
            self._num_waiting -= len(waiting.queries)
            if not waiting.found.done():
                batch.append(waiting)
                size += len(waiting.queries)
        metrics.WAITING.set(self._num_waiting)
        return batch

    async def _answer(self, batch: list[_Waiting], k: int) -> None:
        """Search the distinct queries of `batch` and resolve its futures, with the retriever's error if it fails."""
        queries = dict.fromkeys(query for waiting in batch for query in waiting.queries)
        try:
            found = await self._find(list(queries), k)
        except Exception as error:
            for waiting in batch:
                if not waiting.found.done():
                    waiting.found.set_exception(error)
            return
        for waiting in batch:
            if not waiting.found.done():
                waiting.found.set_result([found[query] for query in waiting.queries])

    async def _find(self, queries: Sequence[str], k: int) -> dict[str, Sequence[Hit]]:
        found = self._cached(queries, k)
        missing = [query for query in queries if query not in found]
        if not missing:
            return found
        metrics.SEARCHES.inc()
        metrics.SEARCHED.inc(len(missing))
        new = await asyncio.to_thread(self._retriever.search, missing, k)
        if len(new) != len(missing):
            raise RetrievalError(f"the retriever returned {len(new)} lists for {len(missing)} queries")
        for query, hits in zip(missing, new, strict=True):
            found[query] = hits
            if self._cache.maxsize:
                with suppress(ValueError):  # larger than the whole cache
                    self._cache[query, k] = hits
        return found

    def _cached(self, queries: Iterable[str], k: int) -> dict[str, Sequence[Hit]]:
        hits = {query: self._cache.get((query, k)) for query in queries}
        return {query: cached for query, cached in hits.items() if cached is not None}


def _num_bytes(hits: Sequence[Hit]) -> int:
    """Approximate memory of hits: their texts, and about 250 bytes for each passage and for the list."""
    return 250 + sum(250 + getsizeof(hit.passage.text) + getsizeof(hit.passage.title) for hit in hits)
