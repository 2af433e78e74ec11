"""Coroutines called from plain code, and concurrent calls collected into batches."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Result of a coroutine, for callers that are not coroutines.

    Inside a running event loop, such as a notebook's, the coroutine runs in a thread of its own.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1, "sleuth-run") as pool:
        return pool.submit(asyncio.run, coroutine).result()


async def in_order(jobs: Iterable[Callable[[], Coroutine[Any, Any, T]]], width: int) -> list[T]:
    """Results of all jobs in order, with at most `width` of them open at a time.

    The first job that raises cancels the others, and its error is raised.
    """
    results: dict[int, T] = {}
    numbered = enumerate(jobs)

    async def work() -> None:
        for index, job in numbered:
            results[index] = await job()

    workers = [asyncio.ensure_future(work()) for _ in range(width)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(results))]


class Tick(Generic[T]):
    """Items that coroutines add during one iteration of their event loop, handed over as one list."""

    def __init__(self, hand_over: Callable[[list[T]], None]) -> None:
        """`hand_over` is called in the event loop, once for every iteration that added items."""
        self._hand_over = hand_over
        self._pending: dict[asyncio.AbstractEventLoop, list[T]] = {}

    def add(self, item: T) -> None:
        """Add an item; it is handed over when every coroutine that is ready now has run."""
        loop = asyncio.get_running_loop()
        if loop not in self._pending:
            self._pending[loop] = []
            loop.call_soon(self._flush, loop)
        self._pending[loop].append(item)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        self._hand_over(self._pending.pop(loop))
