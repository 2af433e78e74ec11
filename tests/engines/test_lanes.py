"""Contexts divided among threads: the same tokens, groups kept together, failures that stop all."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.lanes import TURNS, Lanes
from sleuth.engines.transformers import TransformersEngine

SAMPLING = Sampling(10, 1.0, stop=("e", "a"))


@pytest.fixture(params=[2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


def openings(count: int = 14) -> list[tuple[int, Request]]:
    return [(key, Request([3 + (7 * key + i) % 390 for i in range(20 + key)], key)) for key in range(count)]


class Episodes:
    """Two turns each; remembers who answered, and whether two threads ever did at once."""

    def __init__(self, fails_at: int = -1, error: BaseException | None = None) -> None:
        self.written: dict[int, list[Completion]] = {}
        self.lanes: dict[int, set[str]] = {}
        self.overlapped = False
        self._busy = threading.Lock()
        self._fails_at, self._error = fails_at, error

    def reply(self, ready: Sequence[tuple[int, Completion]]) -> list[tuple[int, Request]]:
        self.overlapped |= not self._busy.acquire(blocking=False)
        try:
            time.sleep(0.002)
            return [self._next(key, completion) for key, completion in ready if not self._over(key)]
        finally:
            self._busy.release()

    def _over(self, key: int) -> bool:
        return len(self.written.get(key, ())) == 2

    def _next(self, key: int, completion: Completion) -> tuple[int, Request]:
        if key == self._fails_at and self._error:
            raise self._error
        self.written.setdefault(key, []).append(completion)
        self.lanes.setdefault(key, set()).add(threading.current_thread().name)
        return key, Request([*openings()[key][1].tokens, *completion.tokens, 5, 6], 100 + key)


def converse(engine: TransformersEngine, episodes: Episodes) -> dict[int, list[Completion]]:
    engine.converse(openings(), SAMPLING, episodes.reply)
    return episodes.written


def tokens(written: dict[int, list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[completion.tokens for completion in written[key]] for key in sorted(written)]


@pytest.fixture
def engine(llama: Any, hf_tokenizer: Any) -> TransformersEngine:
    return TransformersEngine(llama, hf_tokenizer)


@pytest.mark.parametrize("budget", [1 << 40, 400, 1])
def test_tokens_do_not_depend_on_the_lanes(
    engine: TransformersEngine, llama: Any, hf_tokenizer: Any, threads: int, budget: int
) -> None:
    torch.set_num_threads(1)
    alone = Episodes()
    expected = converse(TransformersEngine(llama, hf_tokenizer), alone)
    torch.set_num_threads(threads)
    assert engine.is_batched
    assert engine._lanes is not None
    engine._lanes.budget = budget
    for _ in range(2):  # the second time from warm caches
        divided = Episodes()
        assert tokens(converse(engine, divided)) == tokens(expected)
        assert {name for lanes in alone.lanes.values() for name in lanes} == {"MainThread"}
        assert all(len(lanes) == 1 for lanes in divided.lanes.values())  # where its cache is
        assert len({name for lanes in divided.lanes.values() for name in lanes}) > 1
        assert not divided.overlapped
    held = sum(lane.cache.slots * lane.cache.capacity for lane in engine._lanes.decoders)
    assert budget < 1000 or held <= budget


def test_few_turns_have_one_lane_and_every_thread(engine: TransformersEngine, threads: int) -> None:
    used = []
    engine.converse(
        openings(TURNS + 1), SAMPLING, lambda ready: used.append(threading.current_thread().name) or []
    )
    assert set(used) == {"MainThread"}
    assert engine._lanes is not None
    assert len(engine._lanes.decoders) == 1


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 50])
def test_neighbours_stay_together(threads: int, count: int) -> None:
    lanes = Lanes(lambda *inputs: inputs[0], torch.device("cpu"), torch.no_grad)
    turns: list[Any] = list(range(count))
    shares = lanes._divide(turns)
    assert [turn for share in shares for turn in share] == turns
    assert len(shares) == max(1, min(threads, count // TURNS))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("error", [ValueError("the world is broken"), KeyboardInterrupt()])
def test_a_failure_stops_every_lane(engine: TransformersEngine, threads: int, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        converse(engine, Episodes(fails_at=9, error=error))
    assert caught.value is error
    assert engine._lanes is not None
    assert all(not lane.cache.slots for lane in engine._lanes.decoders)  # may hold less than they claim
    assert len(converse(engine, Episodes())) == len(openings())


def test_an_interrupt_stops_every_lane_at_its_next_step(engine: TransformersEngine, threads: int) -> None:
    assert engine.is_batched
    assert engine._lanes is not None
    inner, passes = engine._lanes._forward, []

    def slow(*inputs: Any) -> Any:
        passes.append(threading.current_thread().name)
        time.sleep(0.05)
        return inner(*inputs)

    engine._lanes._forward = slow
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.converse(openings(), Sampling(400, 1.0), lambda ready: [])
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 10
    assert len(set(passes)) > 1
    engine._lanes._forward = inner
    assert len(converse(engine, Episodes())) == len(openings())


def test_lanes_compute_without_gradients(engine: TransformersEngine, threads: int) -> None:
    assert engine.is_batched
    assert engine._lanes is not None
    inner, modes = engine._lanes._forward, set()

    def forward(*inputs: Any) -> Any:
        modes.add((threading.current_thread().name, torch.is_grad_enabled()))
        return inner(*inputs)

    engine._lanes._forward = forward
    engine.model.train()
    converse(engine, Episodes())
    assert len(modes) > 1
    assert not any(enabled for _, enabled in modes)
    assert engine.model.training
