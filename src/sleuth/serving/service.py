"""Service: one retriever from opening to closing. It is ready once it has been opened and has searched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from sleuth.errors import SleuthError
from sleuth.retrievers.base import Retriever
from sleuth.serving.batching import Batcher
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import Metrics
from sleuth.serving.wire import RequestError, Wanted
from sleuth.types import Hit

_FIRST_QUERY = "first search"
"""Whatever is loaded at the first search (an encoder, pages of a mapped file) is loaded before anyone waits for it."""


class Service:
    """What the routes of one server share. Used on its event loop only."""

    def __init__(
        self, open_retriever: Callable[[], Retriever], limits: Limits, metrics: Metrics | None = None
    ) -> None:
        """Nothing is opened yet. `open_retriever` is called once, in a thread."""
        self.limits = limits
        self.metrics = metrics or Metrics()
        self.identity: dict[str, str] = {}
        """What the retriever says of itself, once it is open."""
        self.failure: BaseException | None = None
        """Why it could not be opened."""
        self._open_retriever = open_retriever
        self._batcher: Batcher | None = None
        self._opening: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether searches are answered here; `metrics.all_ready`: by every worker."""
        return self._batcher is not None

    def start(self, opened: Callable[[], None]) -> None:
        """Begin to open the retriever; `opened` is called when it is ready or has failed."""
        self._opening = asyncio.create_task(self._open())
        self._opening.add_done_callback(lambda _: opened())

    async def _open(self) -> None:
        opening = asyncio.get_running_loop().run_in_executor(None, self._open_and_search)
        await asyncio.wait([opening])
        self.failure = opening.exception()
        if not self.failure:
            retriever, self.identity = opening.result()
            self._batcher = Batcher(retriever, self.limits, self.metrics)
            self.metrics.set("ready", 1)

    def _open_and_search(self) -> tuple[Retriever, dict[str, str]]:
        retriever = self._open_retriever()
        retriever.search([_FIRST_QUERY], 1)
        return retriever, retriever.identity()

    async def find(self, wanted: Wanted) -> list[Sequence[Hit]]:
        """Hits for each query. RequestError 503 while it is not ready or too busy; SleuthError if the search fails."""
        if self._batcher is None:
            raise RequestError(503, "the index is being opened; try again")
        return await self._batcher.find(wanted.queries, wanted.k)

    def find_now(self, wanted: Wanted) -> list[Sequence[Hit]] | None:
        """The same without waiting, or None where `find` is to be asked; SleuthError if the search fails."""
        return None if self._batcher is None else self._batcher.find_now(wanted.queries, wanted.k)

    async def close(self) -> None:
        """Stop searching. Every request must have been answered before."""
        if self._opening is not None:
            with suppress(SleuthError):
                await self._opening
        if self._batcher is not None:
            await self._batcher.close()
