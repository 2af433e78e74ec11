"""Lanes: requests from any coroutine or thread, decoded continuously by threads over one model.

On CPU a decoding step is a row of small products. Threads inside each product wait for one another
at its end, so several decoders with one thread each are faster; PyTorch releases the interpreter
lock while it computes. A lane's thread lives as long as the lane has work.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import pairwise
from typing import Any, Protocol

import torch

from sleuth.engines.base import Completion
from sleuth.engines.decoding.turn import Turn

TURNS = 4
"""Least turns that justify another lane, since every lane reads all weights at every step."""
RECENT = 256
"""Finished contexts whose lane is remembered, so that the next turn finds its keys and values."""


class Decoder(Protocol):
    """Decodes turns until they stop."""

    def run(self, take: Callable[[], Sequence[Any]], give: Callable[[Sequence[Any]], None]) -> None:
        """Decode Turns until `take` has no more turns; `give` receives those that have stopped."""

    def clear(self) -> None:
        """Free all cached contexts."""


class Ticket(Turn):
    """A turn with the future that waits for its completion."""

    def __init__(self, *turn: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        """`turn`: the arguments of Turn. `loop`: that of the coroutine that waits; None if a thread waits."""
        super().__init__(*turn)
        self.loop = loop
        self.future: asyncio.Future[Completion] | Future[Completion]
        self.future = loop.create_future() if loop else Future()

    def resolve(self, error: BaseException | None) -> None:
        """Set the result, in the event loop if there is one."""
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.completion())


class Lane:
    """One decoder and its turns. The fields are guarded by the lock of Lanes."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.inbox: list[Ticket] = []
        self.unfinished: set[Ticket] = set()
        self.is_running = False
        self.last: list[Ticket] = []
        """Turns that stopped when nothing else was left; resolved once the lane is idle."""


class Lanes:
    """Divides turns among lanes and returns their completions."""

    def __init__(
        self,
        decoders: Sequence[Decoder],
        threads: int,
        shared: Callable[[], AbstractContextManager[object]],
        own: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """One lane for each decoder.

        threads: PyTorch's threads, divided among the lanes that work; 0 leaves them alone.
        shared: entered while any lane works.
        own: entered by each lane's thread, since autocast and gradient mode are thread-local.
        """
        self._lock = threading.Condition()
        self._shared, self._own = shared, own
        self._entered = ExitStack()
        self._threads = threads
        self.lanes = [Lane(decoder) for decoder in decoders]
        self._pool = ThreadPoolExecutor(len(self.lanes), "lane")
        self._recent: deque[tuple[list[int], Lane]] = deque(maxlen=RECENT)

    def submit(self, turns: Sequence[Ticket]) -> None:
        with self._lock:
            for lane, share in self._divide(turns):
                lane.inbox += share
                lane.unfinished.update(share)
                if lane.inbox and not lane.is_running:
                    self._start(lane)

    def wait_until_idle(self) -> None:
        """Block until no lane works."""
        with self._lock:
            self._lock.wait_for(lambda: not self._busy)

    def clear(self) -> None:
        """Free every cached context once no lane works."""
        self.wait_until_idle()
        self._recent.clear()
        for lane in self.lanes:
            lane.decoder.clear()

    @property
    def _busy(self) -> int:
        return sum(lane.is_running for lane in self.lanes)

    def _divide(self, turns: Sequence[Ticket]) -> list[tuple[Lane, Sequence[Ticket]]]:
        """Turns by lane: where their prefix is cached, else in equal runs of neighbours.

        Neighbours stay together, so that the samples of one question share their prompt.
        """
        homes = [(turn, self._home(turn)) for turn in turns]
        fresh = [turn for turn, lane in homes if lane is None]
        lanes = sorted(self.lanes, key=lambda lane: len(lane.unfinished))
        count = min(len(lanes), max(1, len(fresh) // TURNS))
        ends = [len(fresh) * lane // count for lane in range(count + 1)]
        shares = (fresh[start:end] for start, end in pairwise(ends))
        return [*((lane, [turn]) for turn, lane in homes if lane), *zip(lanes, shares, strict=False)]

    def _home(self, turn: Ticket) -> Lane | None:
        """The lane that decoded the longest recent context this one continues."""
        found = [
            (len(tokens), place)
            for place, (tokens, _) in enumerate(self._recent)
            if turn.context[: len(tokens)] == tokens
        ]
        if not found:
            return None
        _, place = max(found)
        _, lane = self._recent[place]
        del self._recent[place]
        return lane

    def _start(self, lane: Lane) -> None:
        if not self._busy:
            self._entered.enter_context(self._shared())
        lane.is_running = True
        self._pool.submit(self._work, lane)

    def _work(self, lane: Lane) -> None:
        """Decode until the lane's inbox is empty. An error fails every turn of the lane."""
        while True:
            error: BaseException | None = None
            try:
                with self._own():
                    lane.decoder.run(lambda: self._take(lane), lambda turns: self._give(lane, turns))
            except BaseException as raised:
                error = raised
                with suppress(Exception):  # what cannot be cleared must not keep the turns waiting
                    lane.decoder.clear()
            with self._lock:
                left = list(lane.unfinished) if error else []
                if error:
                    lane.inbox.clear()
                    lane.unfinished.clear()
                finished = not lane.inbox
                if finished:
                    lane.is_running = False
                    if not self._busy:
                        self._entered.close()
                    self._lock.notify_all()
                last, lane.last = lane.last, []
            deliver(last, None)
            deliver(left, error)
            if finished:
                return

    def _take(self, lane: Lane) -> Sequence[Ticket]:
        with self._lock:
            taken, lane.inbox = lane.inbox, []
            last, lane.last = (lane.last, []) if taken else ([], lane.last)
            if self._threads and torch.get_num_threads() != (own := max(1, self._threads // self._busy)):
                torch.set_num_threads(own)
        deliver(last, None)
        return taken

    def _give(self, lane: Lane, turns: Sequence[Ticket]) -> None:
        with self._lock:
            lane.unfinished.difference_update(turns)
            if len(self.lanes) > 1:
                self._recent.extend((turn.tokens, lane) for turn in turns)
            if not lane.unfinished:
                # The caller may train the model next, so it waits until the lane has left it.
                lane.last += turns
                return
        deliver(turns, None)


def deliver(turns: Sequence[Ticket], error: BaseException | None) -> None:
    """Resolve turns, those of one event loop in one call, so that its coroutines continue together."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[Ticket]] = defaultdict(list)
    for turn in turns:
        by_loop[turn.loop].append(turn)

    def resolve(own: Sequence[Ticket]) -> None:
        for turn in own:
            turn.resolve(error)

    for loop, own in by_loop.items():
        if loop is None:
            resolve(own)
        else:
            with suppress(RuntimeError):  # the loop was closed, so nothing waits any more
                loop.call_soon_threadsafe(resolve, own)
