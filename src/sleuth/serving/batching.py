"""Batcher: queries of many requests, searched together.

`find_now` searches a few queries of a local, quick retriever where they stand, for handing them to a
thread costs more than the search. All others queue in `find`. There a query that finds the retriever
idle and came alone is searched at once; queries that come while others are searched, or as part of a
burst, go together: a batch waits, at most `max_wait_ms`, until it is as large as the one before. The
same query of two requests is searched once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from operator import itemgetter

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.servers.cache import HitCache, Key
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import Metrics
from sleuth.serving.wire import RequestError
from sleuth.types import Hit

Answer = asyncio.Future[Sequence[Hit]]

AT_ONCE = 16
"""Most queries that are searched on the event loop; more may be shared among cores."""
AT_ONCE_S = 0.005
"""Longest that a search on the event loop is expected to keep others waiting."""
_LEARNING = 0.1
"""Weight of one search in the pace expected of the next."""


class Batcher:
    """Between the requests of one event loop and the threads that search."""

    def __init__(self, retriever: Retriever, limits: Limits, metrics: Metrics) -> None:
        """Start working; needs a running event loop."""
        self._retriever = retriever
        self._limits = limits
        self._metrics = metrics
        self._cache = HitCache(limits.cache_bytes)
        self._queue: deque[Key] = deque()
        self._answers: dict[Key, Answer] = {}
        self._some, self._enough = asyncio.Event(), asyncio.Event()
        self._hoped_for = 1
        """Queries in the batch before, for which the next one waits."""
        self._free = asyncio.Semaphore(limits.max_searches)
        self._threads = ThreadPoolExecutor(limits.max_searches, thread_name_prefix="search")
        self._searches: set[asyncio.Task[None]] = set()
        self._worker = asyncio.create_task(self._work())
        # Only what computes in this process: a retriever that waits for another machine would stop every request.
        self._is_local = isinstance(retriever, BM25)
        self._pace_s = 0.0
        """Seconds that searching takes for each character of the queries."""

    async def find(self, queries: Sequence[str], k: int) -> list[Sequence[Hit]]:
        """The best k passages for each query. RequestError 503 if too many wait already; what the retriever raises."""
        keys = [(query, k) for query in queries]
        found, missing = self._remembered(keys)
        new = [key for key in missing if key not in self._answers]
        # A request of more queries than may wait is still taken, if it need not wait behind others.
        if self._queue and len(self._queue) + len(new) > self._limits.max_waiting:
            raise RequestError(503, f"too busy: {len(self._queue)} queries are waiting; try again")
        self._count(keys, missing)
        for key in new:
            self._enqueue(key)
        answers = {key: self._answers[key] for key in missing}
        if answers:
            # Not awaited one by one: a request that is cancelled would cancel what others wait for too.
            await asyncio.wait(answers.values())
        return [found[key] if key in found else answers[key].result() for key in keys]

    def find_now(self, queries: Sequence[str], k: int) -> list[Sequence[Hit]] | None:
        """The same at once, searching on the event loop; None if that could keep others waiting for long."""
        keys = [(query, k) for query in queries]
        found, missing = self._remembered(keys)
        if missing:
            wanted = [query for query, _ in missing]
            if not self._is_quick(wanted):
                return None
            for key, hits in zip(missing, self._look_up(wanted, k), strict=True):
                self._cache.put(key, hits)
                found[key] = hits
            self._metrics.add("batches_total")
            self._metrics.add("searched_total", len(missing))
        self._count(keys, missing)
        return [found[key] for key in keys]

    def _is_quick(self, queries: Sequence[str]) -> bool:
        """Whether searching is expected to be over before anybody minds."""
        if not self._is_local or len(queries) > AT_ONCE:
            return False
        return self._pace_s * sum(map(len, queries)) <= AT_ONCE_S

    def _remembered(self, keys: Sequence[Key]) -> tuple[dict[Key, Sequence[Hit]], list[Key]]:
        """What the cache holds, and the other keys, each once."""
        found: dict[Key, Sequence[Hit]] = {}
        missing = []
        for key in dict.fromkeys(keys):
            if (hits := self._cache.get(key)) is not None:
                found[key] = hits
            else:
                missing.append(key)
        return found, missing

    def _count(self, keys: Sequence[Key], missing: Sequence[Key]) -> None:
        unknown = set(missing)
        self._metrics.add("queries_total", len(keys))
        self._metrics.add("cache_hits_total", sum(key not in unknown for key in keys))

    async def close(self) -> None:
        """End the threads. Every request must have been answered before."""
        self._worker.cancel()
        await asyncio.wait([self._worker, *self._searches])
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, key: Key) -> None:
        self._answers[key] = asyncio.get_running_loop().create_future()
        self._queue.append(key)
        self._metrics.set("waiting_queries", len(self._queue))
        self._some.set()
        if len(self._queue) >= self._hoped_for:
            self._enough.set()

    async def _work(self) -> None:
        while True:
            await self._free.acquire()
            await self._some.wait()
            await self._gather()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._limits.max_batch))]
            self._metrics.set("waiting_queries", len(self._queue))
            self._hoped_for = len(batch)
            if not self._queue:
                self._some.clear()
            search = asyncio.create_task(self._search(batch))
            self._searches.add(search)
            search.add_done_callback(self._searches.discard)

    async def _gather(self) -> None:
        """Wait until as many queries are there as in the batch before, but never long."""
        if len(self._queue) < self._hoped_for:
            self._enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.max_wait_ms / 1e3):
                    await self._enough.wait()

    async def _search(self, batch: list[Key]) -> None:
        """Search one batch in a thread and hand out what it finds, or why it failed."""
        for k, keys in groupby(sorted(batch, key=itemgetter(1)), key=itemgetter(1)):
            queries = [query for query, _ in keys]
            self._metrics.add("batches_total")
            self._metrics.add("searched_total", len(queries))
            running = asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, queries, k)
            await asyncio.wait([running])
            self._hand_out([(query, k) for query in queries], running)
        self._free.release()

    def _look_up(self, queries: list[str], k: int) -> list[list[Hit]]:
        start = time.perf_counter()
        found = self._retriever.search(queries, k)
        pace = (time.perf_counter() - start) / max(1, sum(map(len, queries)))
        self._pace_s += _LEARNING * (pace - self._pace_s)
        if len(found) != len(queries):
            raise RetrievalError(f"the retriever gave {len(found)} lists for {len(queries)} queries")
        return found

    def _hand_out(self, keys: list[Key], running: asyncio.Future[list[list[Hit]]]) -> None:
        fault = running.exception()
        found: Sequence[Sequence[Hit]] = [()] * len(keys) if fault else running.result()
        for key, hits in zip(keys, found, strict=True):
            answer = self._answers.pop(key)
            if fault:
                answer.set_exception(fault)
                answer.exception()  # read, so that an abandoned request leaves no complaint in the log
            else:
                self._cache.put(key, hits)
                answer.set_result(hits)
