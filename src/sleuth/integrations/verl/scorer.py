"""Scorer: rewards of the episodes that end in one process, in batches."""

import asyncio
from collections.abc import Sequence

from sleuth.engines.base import Engine
from sleuth.rewards.base import Reward, score_all
from sleuth.types import Score, Trajectory

Waiting = tuple[Trajectory, asyncio.Future[Score]]


class Scorer:
    """Scores one batch at a time, in a thread; episodes that end meanwhile are the next batch.

    Judges are not made for several threads, and a batch of judgements or probes costs less than as many single ones.
    """

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self._waiting: list[Waiting] = []
        self._work: asyncio.Task[None] | None = None

    async def score(self, trajectory: Trajectory, engine: Engine) -> Score:
        """The score of one episode; see score_all. `engine` answers the probes of its batch."""
        future: asyncio.Future[Score] = asyncio.get_running_loop().create_future()
        self._waiting.append((trajectory, future))
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._score_waiting(engine))
        return await future

    async def _score_waiting(self, engine: Engine) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            found: Sequence[Score | Exception]
            try:
                found = await asyncio.to_thread(score_all, self.reward, [t for t, _ in batch], engine)
            except Exception as error:  # raised again where each score is awaited
                found = [error] * len(batch)
            for (_, future), result in zip(batch, found, strict=True):
                _resolve(future, result)


def _resolve(future: asyncio.Future[Score], result: Score | Exception) -> None:
    if future.done():  # its episode was cancelled
        return
    if isinstance(result, Score):
        future.set_result(result)
    else:
        future.set_exception(result)
