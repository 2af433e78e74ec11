"""Queries of concurrent requests share one search; each request gets its own hits."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.serving.batcher import Batcher
from sleuth.serving.replies import RequestError
from sleuth.types import Hit
from support.gated_retriever import Gated

T = TypeVar("T")


class Failing(Gated):
    """Fails for batches that contain "fail"; returns nothing at all for "short"."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if "fail" in queries:
            raise RetrievalError("no answer")
        return [] if "short" in queries else super().search(queries, k)


def run(retriever: Retriever, scene: Callable[[Batcher], Awaitable[T]], **limits: int) -> T:
    async def play() -> T:
        batcher = Batcher(retriever, **({"max_batch": 64, "max_waiting": 1000, "cache_bytes": 0} | limits))
        return await asyncio.wait_for(scene(batcher), 20)

    return asyncio.run(play())


def ids(found: Sequence[Sequence[Hit]]) -> list[str]:
    return [hit.passage.id for hits in found for hit in hits]


async def started(*searches: Awaitable[Any]) -> list[asyncio.Future[Any]]:
    """Searches that have joined the queue, or are under way if it was empty."""
    tasks = [asyncio.ensure_future(search) for search in searches]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def while_busy(batcher: Batcher, retriever: Gated, *requests: tuple[list[str], int]) -> list[list[str]]:
    """Ids found for requests that arrive during another search."""
    first = await started(batcher.search(["first"], 1))
    later = await started(*(batcher.search(queries, k) for queries, k in requests))
    retriever.gate.set()
    await asyncio.gather(*first)
    return [ids(found) for found in await asyncio.gather(*later)]


def test_lone_query_is_searched_immediately():
    retriever = Gated(is_open=True)

    async def scene(batcher: Batcher) -> None:
        for i in range(3):
            assert ids(await batcher.search([f"q{i}"], 3)) == [f"q{i}-3"]

    run(retriever, scene)
    assert retriever.calls == [([f"q{i}"], 3) for i in range(3)]


def test_requests_during_a_search_form_the_next_batch():
    retriever = Gated()
    requests = [([f"q{i}", "same"], 1) for i in range(10)]
    found = run(retriever, lambda batcher: while_busy(batcher, retriever, *requests))
    assert found == [[f"q{i}-1", "same-1"] for i in range(10)]
    assert retriever.calls == [(["first"], 1), (["q0", "same", *(f"q{i}" for i in range(1, 10))], 1)]


def test_batches_contain_one_k_and_stop_at_max_batch():
    retriever = Gated()
    requests = [([f"q{i}"], 1 + i % 2) for i in range(30)]
    found = run(retriever, lambda batcher: while_busy(batcher, retriever, *requests), max_batch=8)
    assert found == [[f"q{i}-{1 + i % 2}"] for i in range(30)]
    assert [len(queries) for queries, _ in retriever.calls] == [1, *[4] * 6, 3, 3]
    assert {k for _, k in retriever.calls} == {1, 2}


def test_large_request_is_not_split():
    retriever = Gated(is_open=True)
    found = run(retriever, lambda batcher: batcher.search([f"q{i}" for i in range(9)], 1), max_batch=4)
    assert (len(found), len(retriever.calls)) == (9, 1)


@pytest.mark.parametrize(("cache_bytes", "calls"), [(0, 5), (1 << 20, 4)])
def test_cache_answers_exactly_the_same_query_and_k(cache_bytes: int, calls: int):
    retriever = Gated(is_open=True)

    async def scene(batcher: Batcher) -> list[str]:
        asked = [("same", 2), ("same", 2), ("same", 3), ("Same", 2)]
        found = [ids(await batcher.search([query], k)) for query, k in asked]
        found.append(ids(await batcher.search(["same", "new", "same"], 2)))
        return [name for names in found for name in names]

    expected = ["same-2", "same-2", "same-3", "Same-2", "same-2", "new-2", "same-2"]
    assert run(retriever, scene, cache_bytes=cache_bytes) == expected
    assert len(retriever.calls) == calls
    assert retriever.calls[-1][0] == (["new"] if cache_bytes else ["same", "new"])


@pytest.mark.parametrize(
    ("query", "message"), [("fail", "no answer"), ("short", "returned 0 lists for 1 queries")]
)
def test_error_reaches_the_requests_of_its_batch_only(query: str, message: str):
    async def scene(batcher: Batcher) -> list[str]:
        with pytest.raises(RetrievalError, match=message):
            await batcher.search([query], 1)
        return ids(await batcher.search(["fine"], 1))

    assert run(Failing(is_open=True), scene) == ["fine-1"]


def test_full_queue_refuses_but_an_empty_one_takes_any_request():
    retriever = Gated()

    async def scene(batcher: Batcher) -> list[str]:
        tasks = await started(batcher.search(["first"], 1))
        tasks += await started(batcher.search([f"q{i}" for i in range(9)], 1))
        with pytest.raises(RequestError, match="9 queries are waiting") as caught:
            await batcher.search(["one more"], 1)
        assert caught.value.status == 503
        retriever.gate.set()
        return [name for found in await asyncio.gather(*tasks) for name in ids(found)]

    assert run(retriever, scene, max_waiting=5) == ["first-1", *(f"q{i}-1" for i in range(9))]


def test_cancelled_request_is_not_searched_and_does_not_affect_others():
    retriever = Gated()

    async def scene(batcher: Batcher) -> list[str]:
        tasks = await started(*(batcher.search([name], 1) for name in ("first", "leaving", "staying")))
        running, leaving = await started(batcher.search(["first"], 1), batcher.search(["leaving too"], 1))
        for task in (tasks[0], tasks[1], leaving):
            task.cancel()
        retriever.gate.set()
        return ids(await tasks[2]) + ids(await running)

    assert run(retriever, scene) == ["staying-1", "first-1"]
    assert [queries for queries, _ in retriever.calls[1:]] == [["first"]]
