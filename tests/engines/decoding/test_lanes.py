"""Requests of coroutines and threads, divided among lanes: same tokens, cached prefixes, failures that reach their caller."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch

from sleuth.concurrency import run
from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.decoding.lanes import Lanes, Ticket
from sleuth.engines.decoding.slot_decoder import SlotDecoder
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import EngineError
from support.models import LLAMA, TOKENIZER

SAMPLING = Sampling(10, 1.0, stop=("e", "a"))
COUNT = 14


@pytest.fixture(params=[2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


@pytest.fixture
def engine() -> TransformersEngine:
    return TransformersEngine(LLAMA, TOKENIZER)


def prompt(key: int) -> list[int]:
    return [3 + (7 * key + i) % 390 for i in range(20 + key)]


async def episode(engine: TransformersEngine, key: int, sampling: Sampling = SAMPLING) -> list[Completion]:
    """Two turns, with a pause of the world between them."""
    first = await engine.sample(Request(prompt(key), key), sampling)
    await asyncio.sleep(0.002 * (key % 3))
    again = Request([*prompt(key), *first.tokens, 5, 6], 100 + key)
    return [first, await engine.sample(again, sampling)]


def play(engine: TransformersEngine, order: Sequence[int] = range(COUNT)) -> dict[int, list[Completion]]:
    async def together() -> list[list[Completion]]:
        return await asyncio.gather(*(episode(engine, key) for key in order))

    return dict(zip(order, run(together()), strict=True))


def decoders(engine: TransformersEngine) -> list[SlotDecoder]:
    """The engine's decoders; it opens them at its first call."""
    engine.generate([], SAMPLING)
    return [lane.decoder for lane in engine._lanes.lanes]  # type: ignore[misc]


def watched(engine: TransformersEngine, pause_s: float = 0.0) -> list[str]:
    """Names of the threads that make forward passes from now on."""
    passes: list[str] = []
    for decoder in decoders(engine):
        inner = decoder.forward

        def forward(*inputs: Any, inner: Any = inner) -> Any:
            passes.append(threading.current_thread().name)
            time.sleep(pause_s)
            return inner(*inputs)

        decoder.forward = forward
    return passes


@pytest.mark.parametrize("budget", [1 << 40, 400, 1])
def test_tokens_depend_on_neither_lanes_nor_budget_nor_order(
    engine: TransformersEngine, threads: int, budget: int
) -> None:
    torch.set_num_threads(1)
    expected = play(TransformersEngine(LLAMA, TOKENIZER))
    torch.set_num_threads(threads)
    for decoder in decoders(engine):
        decoder.budget = budget
    passes = watched(engine)
    for order in (range(COUNT), range(COUNT - 1, -1, -1)):  # the second time from warm caches
        found = play(engine, order)
        for key, completions in expected.items():
            assert [c.tokens for c in found[key]] == [c.tokens for c in completions]
    assert len(set(passes)) == threads
    held = sum(decoder.cache.slots * decoder.cache.capacity for decoder in decoders(engine))
    assert budget < 1000 or held <= budget * threads


def test_plain_calls_equal_coroutines_inside_a_running_event_loop_too(
    engine: TransformersEngine, threads: int
) -> None:
    requests = [Request(prompt(key), key) for key in range(COUNT)]
    expected = [completions[0].tokens for completions in play(engine).values()]

    async def notebook() -> list[Completion]:
        return engine.generate(requests, SAMPLING)

    assert [c.tokens for c in asyncio.run(notebook())] == expected
    assert [c.tokens for c in engine.generate(requests, SAMPLING)] == expected


def test_the_next_turn_is_decoded_where_its_prefix_is_cached(
    engine: TransformersEngine, threads: int
) -> None:
    play(engine)
    for key in range(COUNT):
        holders = [
            d for d in decoders(engine) if any(held[: 20 + key] == prompt(key) for held in d.cache.tokens)
        ]
        assert len(holders) == 1


class OneToken:
    """A decoder that writes one token a turn and keeps the context, not the turn."""

    def __init__(self) -> None:
        self.contexts: list[list[int]] = []

    def run(self, take: Callable[[], Sequence[Ticket]], give: Callable[[Sequence[Ticket]], None]) -> None:
        while turns := take():
            for turn in turns:
                turn.take(5, 0.0)
                self.contexts.append(list(turn.context))
            give(turns)

    def clear(self) -> None:
        self.contexts.clear()


def test_the_lane_of_a_context_is_remembered_after_its_turn_is_freed() -> None:
    # A freed turn's address is soon that of another turn, so addresses cannot stand for turns.
    decoders = [OneToken(), OneToken()]
    lanes = Lanes(decoders, 0, nullcontext, nullcontext)

    def play_round(contexts: Sequence[list[int]]) -> None:
        turns = [Ticket(Request(c), Sampling(1), 200, str, (), loop=None) for c in contexts]
        lanes.submit(turns)
        lanes.wait_until_idle()

    rounds = [[prompt(8 * number + key) for key in range(8)] for number in range(12)]
    for contexts in rounds:
        play_round(contexts)
    homes = [[tokens in decoder.contexts for decoder in decoders] for c in rounds for tokens in c]
    assert [True, False] in homes
    assert [False, True] in homes
    for contexts in rounds:
        play_round([[*tokens, 5] for tokens in contexts])
    later = [[[*tokens, 5] in decoder.contexts for decoder in decoders] for c in rounds for tokens in c]
    assert later == homes


def test_calls_with_other_settings_share_the_batch(engine: TransformersEngine) -> None:
    settings = [Sampling(6, 0.0), Sampling(9, 1.0), Sampling(4, 0.7, 0.9)]

    async def mixed() -> list[list[Completion]]:
        return await asyncio.gather(*(episode(engine, key, each) for key, each in enumerate(settings)))

    apart = [run(episode(engine, key, each)) for key, each in enumerate(settings)]
    assert [[c.tokens for c in each] for each in run(mixed())] == [[c.tokens for c in each] for each in apart]


def test_a_failed_forward_pass_reaches_its_callers_and_leaves_nothing_stale(
    engine: TransformersEngine,
) -> None:
    expected = [[c.tokens for c in both] for both in play(engine).values()]
    broken = decoders(engine)[0]
    inner = broken.forward

    def fails(*inputs: Any) -> Any:
        raise ValueError("the model is broken")

    broken.forward = fails
    with pytest.raises(ValueError, match="the model is broken"):
        play(engine)
    assert not broken.cache.slots
    broken.forward = inner
    assert [[c.tokens for c in both] for both in play(engine).values()] == expected


def test_a_cancelled_call_frees_its_slot(engine: TransformersEngine) -> None:
    passes = watched(engine, pause_s=0.01)

    async def cancelled() -> None:
        task = asyncio.ensure_future(engine.sample(Request(prompt(0)), Sampling(200, 1.0)))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(cancelled())
    engine._lanes.wait_until_idle()
    assert 0 < len(passes) < 60
    assert not any(lane.unfinished for lane in engine._lanes.lanes)


def test_an_interrupt_stops_every_lane_at_its_next_step(engine: TransformersEngine, threads: int) -> None:
    passes = watched(engine, pause_s=0.05)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.generate([Request(prompt(key), key) for key in range(COUNT)], Sampling(400, 1.0))
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    engine._lanes.wait_until_idle()
    assert len(set(passes)) > 1
    assert len(passes) < 200
    assert len(play(engine)) == COUNT


def test_lanes_compute_without_gradients_and_restore_training_mode(
    engine: TransformersEngine, threads: int
) -> None:
    modes = set()
    for decoder in decoders(engine):
        inner = decoder.forward

        def forward(*inputs: Any, inner: Any = inner) -> Any:
            modes.add((threading.current_thread().name, torch.is_grad_enabled()))
            return inner(*inputs)

        decoder.forward = forward
    engine.model.train()
    play(engine)
    engine._lanes.wait_until_idle()
    assert len(modes) > 1
    assert not any(enabled for _, enabled in modes)
    assert engine.model.training


def test_a_plain_call_returns_after_its_lanes_have_left_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowFuture(Future[Any]):
        """A caller that is still busy with one completion while the others are written."""

        def result(self, timeout: float | None = None) -> Any:
            found = super().result(timeout)
            time.sleep(0.1)
            return found

    monkeypatch.setattr("sleuth.engines.decoding.lanes.Future", SlowFuture)
    engine = TransformersEngine(LLAMA, TOKENIZER, context_length=64)
    inner = engine._arithmetic

    @contextmanager
    def slow_to_leave() -> Iterator[None]:
        with inner():
            yield
            time.sleep(0.5)

    monkeypatch.setattr(engine, "_arithmetic", slow_to_leave)
    completions = engine.generate([Request([5] * 63), Request([5] * 50)], Sampling(10, 1.0))
    assert [len(completion.tokens) for completion in completions] == [1, 10]
    assert not any(lane.is_running for lane in engine._lanes.lanes)


def test_slow_callers_do_not_delay_decoding(engine: TransformersEngine) -> None:
    passes = watched(engine)

    async def slow_and_fast() -> int:
        first = await engine.sample(Request(prompt(0)), Sampling(2, 1.0))
        assert first.tokens
        waits = asyncio.ensure_future(asyncio.sleep(30))  # a search that does not return
        before = len(passes)
        await asyncio.gather(*(engine.sample(Request(prompt(k), k), Sampling(40, 1.0)) for k in range(1, 5)))
        waits.cancel()
        return len(passes) - before

    assert run(slow_and_fast()) >= 10


def test_tickets_of_a_closed_event_loop_are_dropped(engine: TransformersEngine) -> None:
    decoders(engine)
    loop = asyncio.new_event_loop()
    turn = engine._turn(Request(prompt(0)), SAMPLING, loop)
    loop.close()
    engine._lanes.submit([turn])
    engine._lanes.wait_until_idle()
    assert len(play(engine)) == COUNT


def test_an_engine_that_cannot_open_raises_in_coroutines_too(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise EngineError("out of memory")

    monkeypatch.setattr(engine, "_open_lanes", fail)
    request = Request(prompt(0))
    with pytest.raises(EngineError, match="out of memory"):
        run(asyncio.wait_for(engine.sample(request, SAMPLING), 10))
    with pytest.raises(EngineError, match="out of memory"):
        engine.generate([request], SAMPLING)
