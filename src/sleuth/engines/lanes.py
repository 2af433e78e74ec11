"""Lanes: several slot decoders over one model, each in a thread of its own.

On CPU a decoding step is a row of small products. Threads inside each product meet at its end, so
they gain little and lose much whenever another process takes a core; lanes never wait for one
another, and PyTorch lets go of the interpreter while it computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise

import torch
from torch import Tensor

from sleuth.engines.base import Sampling
from sleuth.engines.slot_cache import SlotCache
from sleuth.engines.slot_decoder import Forward, Refill, SlotDecoder
from sleuth.engines.turn import Turn

MOST = 4
"""Lanes at a time: beyond a few, they wait for the interpreter more than they compute."""
TURNS = 4
"""Turns a lane must have; every lane reads all weights at every step."""


class _CancelledError(Exception):
    """Another lane has failed, or the caller was interrupted."""


class Lanes:
    """Runs turns to their end, divided among as many decoders as there are threads to use."""

    def __init__(
        self, forward: Forward, device: torch.device, within: Callable[[], AbstractContextManager[object]]
    ) -> None:
        """`within`: what every thread enters before it computes, since gradient mode and autocast are a thread's own."""
        self._forward = forward
        self._device = device
        self._within = within
        self._cancelled = threading.Event()
        self.decoders = [self._decoder()]
        self.budget = 1 << 40
        """Most tokens all caches together may hold; see SlotDecoder.budget."""

    def run(self, turns: Sequence[Turn], sampling: Sampling, refill: Refill) -> None:
        """Bring every turn to its stop; see SlotDecoder.run. `refill` is called by one thread at a time.

        Turns that stand together stay together, so that those of a group share their prompt; what
        `refill` returns goes on where the stopped turns were.
        """
        shares = self._divide(turns)
        self._open(len(shares))
        if len(shares) == 1:
            self.decoders[0].run(turns, sampling, refill)
            return
        one_at_a_time = threading.Lock()

        def refill_alone(stopped: Sequence[Turn]) -> Sequence[Turn]:
            with one_at_a_time:
                return refill(stopped)

        def run(decoder: SlotDecoder, share: Sequence[Turn]) -> None:
            with self._within():
                decoder.run(share, sampling, refill_alone)

        with _threads_each(len(shares)), ThreadPoolExecutor(len(shares), "lane") as pool:
            futures = [pool.submit(run, *pair) for pair in zip(self.decoders, shares, strict=True)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                # Nothing to cancel if all are done; an interrupt or a failure stops the others at their next step.
                if not all(future.done() and not future.exception() for future in futures):
                    self._cancelled.set()
                wait(futures)
                self._cancelled.clear()
        errors = [error for future in futures if (error := future.exception())]
        if errors:
            raise next((error for error in errors if not isinstance(error, _CancelledError)), errors[0])

    def clear(self) -> None:
        """Forget all contexts and free the memory."""
        for decoder in self.decoders:
            decoder.clear()

    def _divide(self, turns: Sequence[Turn]) -> list[Sequence[Turn]]:
        """Equal runs of neighbours, one for each lane worth opening."""
        threads = torch.get_num_threads() if self._device.type == "cpu" else 1
        count = max(1, min(threads, MOST, len(turns) // TURNS))
        ends = [len(turns) * lane // count for lane in range(count + 1)]
        return [turns[start:end] for start, end in pairwise(ends)]

    def _open(self, count: int) -> None:
        """Have `count` decoders that share the budget; the others give their memory back."""
        for idle in self.decoders[count:]:
            idle.clear()
        self.decoders += [self._decoder() for _ in range(count - len(self.decoders))]
        for decoder in self.decoders[:count]:
            decoder.budget = max(1, self.budget // count)

    def _decoder(self) -> SlotDecoder:
        return SlotDecoder(self._unless_cancelled, self._device)

    def _unless_cancelled(self, ids: Tensor, positions: Tensor, cache: SlotCache, columns: int) -> Tensor:
        if self._cancelled.is_set():
            raise _CancelledError
        return self._forward(ids, positions, cache, columns)


@contextmanager
def _threads_each(lanes: int) -> Iterator[None]:
    """PyTorch's threads, divided among lanes."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // lanes))
    try:
        yield
    finally:
        torch.set_num_threads(before)
