"""Queries of many requests meet in one call of the retriever; what one asks, another is not told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25, open_index
from sleuth.serving.batching import AT_ONCE, Batcher
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import Metrics
from sleuth.serving.wire import RequestError
from sleuth.types import Hit, Passage

T = TypeVar("T")


class Echo(Retriever):
    """Finds the query itself, with k in its id; remembers what it was asked at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.calls: list[tuple[list[str], int]] = []
        self.lock = threading.Lock()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        with self.lock:
            self.calls.append((list(queries), k))
        time.sleep(self.seconds)
        if "fail" in queries:
            raise RetrievalError("no answer")
        return [[Hit(Passage(f"{query}-{k}", "", query), 1.0)] for query in queries]


def run(retriever: Retriever, limits: Limits, scene: Callable[[Batcher], Awaitable[T]]) -> T:
    async def play() -> T:
        batcher = Batcher(retriever, limits, Metrics())
        try:
            return await asyncio.wait_for(scene(batcher), 20)
        finally:
            await batcher.close()

    return asyncio.run(play())


def ids(found: Sequence[Sequence[Hit]]) -> list[str]:
    return [hit.passage.id for hits in found for hit in hits]


def test_a_lone_query_does_not_wait_for_others():
    echo = Echo()

    async def scene(batcher: Batcher) -> float:
        start = time.perf_counter()
        for i in range(5):
            assert ids(await batcher.find([f"q{i}"], 3)) == [f"q{i}-3"]
        return time.perf_counter() - start

    assert run(echo, Limits(max_wait_ms=5000), scene) < 1
    assert [len(queries) for queries, _ in echo.calls] == [1] * 5


def test_what_comes_during_a_search_is_searched_together():
    echo = Echo(0.2)

    async def scene(batcher: Batcher) -> list[str]:
        first = asyncio.create_task(batcher.find(["first"], 1))
        await asyncio.sleep(0.05)
        found = await asyncio.gather(first, *(batcher.find([f"q{i}"], 1) for i in range(10)))
        return [name for one in found for name in ids(one)]

    assert run(echo, Limits(max_searches=1), scene) == ["first-1", *(f"q{i}-1" for i in range(10))]
    assert [len(queries) for queries, _ in echo.calls] == [1, 10]


def test_a_batch_waits_for_as_many_as_the_one_before_but_never_long():
    echo = Echo()

    async def scene(batcher: Batcher) -> float:
        await batcher.find(["a", "b", "c"], 1)
        late = asyncio.create_task(asyncio.sleep(0.05))
        late.add_done_callback(lambda _: others.append(asyncio.create_task(batcher.find(["e", "f"], 1))))
        others: list[asyncio.Task[list[Sequence[Hit]]]] = []
        await batcher.find(["d"], 1)  # waits for e and f
        start = time.perf_counter()
        await batcher.find(["g"], 1)  # two more never come
        return time.perf_counter() - start

    waited = run(echo, Limits(max_wait_ms=300), scene)
    assert [queries for queries, _ in echo.calls] == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert 0.25 < waited < 2


def test_the_same_query_is_searched_once_and_remembered():
    echo = Echo(0.1)

    async def scene(batcher: Batcher) -> list[str]:
        found = await asyncio.gather(*(batcher.find(["same", "same"], 2) for _ in range(20)))
        found.append(await batcher.find(["same"], 2))
        found.append(await batcher.find(["same"], 3))
        found.append(await batcher.find(["Same"], 2))
        return [name for one in found for name in ids(one)]

    assert run(echo, Limits(), scene) == ["same-2"] * 41 + ["same-3", "Same-2"]
    assert echo.calls == [(["same"], 2), (["same"], 3), (["Same"], 2)]


def test_without_a_cache_it_is_searched_again():
    echo = Echo()

    async def scene(batcher: Batcher) -> None:
        await batcher.find(["same"], 2)
        await batcher.find(["same"], 2)

    run(echo, Limits(cache_bytes=0), scene)
    assert len(echo.calls) == 2


def test_numbers_of_passages_are_not_mixed_and_batches_not_too_large():
    echo = Echo(0.05)

    async def scene(batcher: Batcher) -> list[str]:
        found = await asyncio.gather(*(batcher.find([f"q{i}"], 1 + i % 2) for i in range(30)))
        return [name for one in found for name in ids(one)]

    assert run(echo, Limits(max_batch=8, max_searches=1), scene) == [f"q{i}-{1 + i % 2}" for i in range(30)]
    assert all(len(queries) <= 8 for queries, _ in echo.calls)
    assert {k for _, k in echo.calls} == {1, 2}


def test_a_failure_reaches_only_those_who_asked_with_it():
    echo = Echo()

    async def scene(batcher: Batcher) -> list[str]:
        with pytest.raises(RetrievalError, match="no answer"):
            await batcher.find(["fail"], 1)
        return ids(await batcher.find(["fine"], 1))

    assert run(echo, Limits(), scene) == ["fine-1"]


def test_too_many_waiting_are_turned_away_but_one_large_request_is_not():
    echo = Echo(0.1)

    async def scene(batcher: Batcher) -> list[str]:
        large = asyncio.create_task(batcher.find([f"q{i}" for i in range(9)], 1))
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as caught:
            await batcher.find(["one more"], 1)
        assert caught.value.status == 503
        return ids(await large)

    limits = Limits(max_waiting=5, max_batch=4, max_searches=1)
    assert run(echo, limits, scene) == [f"q{i}-1" for i in range(9)]


def test_a_request_that_is_given_up_takes_no_other_along():
    echo = Echo(0.1)

    async def scene(batcher: Batcher) -> list[str]:
        leaving = asyncio.create_task(batcher.find(["same"], 1))
        staying = asyncio.create_task(batcher.find(["same"], 1))
        await asyncio.sleep(0.02)
        leaving.cancel()
        return ids(await staying)

    assert run(echo, Limits(), scene) == ["same-1"]
    assert len(echo.calls) == 1


def test_what_is_quick_is_found_at_once_and_as_otherwise(index: Path):
    async def scene(batcher: Batcher) -> None:
        queries = ["town 7", "radium", "", "town 7"]
        at_once = batcher.find_now(queries, 2)
        assert at_once == await batcher.find(queries, 2)
        assert at_once is not None
        assert [hits[0].passage.id for hits in at_once if hits] == ["town-7", "curie", "town-7"]
        assert batcher.find_now([f"street {i}" for i in range(AT_ONCE + 1)], 2) is None
        assert batcher.find_now([f"street {i % 3}" for i in range(AT_ONCE + 1)], 2) is not None
        assert batcher.find_now([], 2) == []

    run(open_index(index), Limits(), scene)


def test_at_once_is_given_up_where_searching_is_slow_and_taken_up_again(index: Path):
    class Moody(BM25):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            time.sleep(0.03 if "slow" in queries[0] else 0)
            return super().search(queries, k)

    async def scene(batcher: Batcher) -> None:
        for i in range(1, 20):
            if batcher.find_now([f"slow {i}"], 1) is None:
                break
        assert 1 < i < 10  # one slow search is no rule
        assert batcher.find_now(["radium"], 1) is None
        for j in range(100):
            await batcher.find([f"quick {j}"], 1)
        assert batcher.find_now(["radium"], 1) is not None

    run(Moody(path=str(index)), Limits(cache_bytes=0), scene)


def test_a_retriever_that_may_wait_for_others_is_never_asked_at_once_but_remembered():
    echo = Echo()

    async def scene(batcher: Batcher) -> None:
        assert batcher.find_now(["a"], 1) is None
        await batcher.find(["a"], 1)
        found = batcher.find_now(["a"], 1)
        assert found is not None
        assert ids(found) == ["a-1"]
        assert batcher.find_now(["a", "b"], 1) is None

    run(echo, Limits(), scene)
    assert echo.calls == [(["a"], 1)]
