"""Turns that join while others are still being written: the same tokens, fewer passes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from sleuth.engines.base import Completion, Engine, Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.engines.transformers import TransformersEngine

TURNS = 3


def openings(count: int = 12) -> list[list[int]]:
    rng = random.Random(0)
    shared = [rng.randrange(3, 400) for _ in range(20)]
    return [shared + [rng.randrange(3, 400) for _ in range(rng.randrange(1, 30))] for _ in range(count)]


def world(key: int, turn: int) -> list[int]:
    return [(17 * key + 5 * turn + i) % 390 + 3 for i in range(6)]


class Play:
    """Episodes of TURNS turns each; a context is cut off the completion at its own limit."""

    def __init__(self, contexts: Sequence[list[int]]) -> None:
        self.contexts = [list(context) for context in contexts]
        self.turns = [0] * len(contexts)
        self.written: list[list[tuple[int, ...]]] = [[] for _ in contexts]

    def start(self) -> list[tuple[int, Request]]:
        return [(key, Request(context, key)) for key, context in enumerate(self.contexts)]

    def reply(self, ready: Sequence[tuple[int, Completion]]) -> list[tuple[int, Request]]:
        further = []
        for key, completion in ready:
            self.written[key].append(completion.tokens)
            self.turns[key] += 1
            self.contexts[key] += [*completion.tokens, *world(key, self.turns[key])]
            if self.turns[key] < TURNS:
                further.append((key, Request(self.contexts[key], 100 * self.turns[key] + key)))
        return further


def conversed(engine: Engine, sampling: Sampling) -> list[list[tuple[int, ...]]]:
    play = Play(openings())
    engine.converse(play.start(), sampling, play.reply)
    return play.written


def in_rounds(engine: Engine, sampling: Sampling) -> list[list[tuple[int, ...]]]:
    play = Play(openings())
    Engine.converse(engine, play.start(), sampling, play.reply)
    return play.written


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("budget", [None, 300, 1])
def test_the_tokens_are_those_of_rounds(
    llama: Any, hf_tokenizer: Any, temperature: float, budget: int | None
) -> None:
    # A stop string of one common letter ends turns at different times.
    sampling = Sampling(12, temperature, stop=("e", "a", "1"))
    engine = TransformersEngine(llama, hf_tokenizer)
    expected = in_rounds(TransformersEngine(llama, hf_tokenizer), sampling)
    assert engine.is_batched
    if budget is not None:
        assert engine._lanes is not None
        engine._lanes.budget = budget
    assert conversed(engine, sampling) == expected
    assert conversed(engine, sampling) == expected  # from a warm cache


def test_no_row_waits_for_a_straggler(llama: Any, hf_tokenizer: Any) -> None:
    """One row writes 40 tokens a turn and stops late; the others' next turns are written beside it."""
    sampling = Sampling(40, 1.0, stop=("e", "a", "1"))
    passes = {}
    for name, way in (("rounds", in_rounds), ("converse", conversed)):
        engine = TransformersEngine(llama, hf_tokenizer)
        assert engine._lanes is None
        assert engine.is_batched
        assert engine._lanes is not None
        inner, count = engine._lanes.decoders[0].forward, [0]

        def forward(*inputs: Any, inner: Any = inner, count: list[int] = count) -> Any:
            count[0] += inputs[0].shape[1] == 1
            return inner(*inputs)

        engine._lanes.decoders[0].forward = forward
        written = way(engine, sampling)
        lengths = [[len(tokens) for tokens in turns] for turns in written]
        passes[name] = count[0]
        if name == "rounds":
            # Every round lasts as long as its longest turn.
            assert count[0] == sum(max(turns[i] for turns in lengths) - 1 for i in range(TURNS))
    longest_episode = max(sum(turns) for turns in lengths)
    assert longest_episode - TURNS <= passes["converse"] < passes["rounds"]


def test_a_request_without_room_is_answered_at_once(llama: Any, hf_tokenizer: Any) -> None:
    engine = TransformersEngine(llama, hf_tokenizer, context_length=30)
    seen: list[tuple[int, str]] = []

    def reply(ready: Sequence[tuple[int, Completion]]) -> list[tuple[int, Request]]:
        seen.extend((key, completion.stop) for key, completion in ready)
        return [(key + 10, Request([5] * 30)) for key, _ in ready if key < 10]

    engine.converse([(0, Request([5] * 30)), (1, Request([5] * 4))], Sampling(3, 0.0), reply)
    assert sorted(seen) == [(0, "context"), (1, "length"), (10, "context"), (11, "context")]


def test_an_engine_without_slots_and_one_without_a_model_converse_too(
    make_model: Any, hf_tokenizer: Any
) -> None:
    single = TransformersEngine(make_model("lfm2"), hf_tokenizer)
    with pytest.warns(UserWarning, match="one sequence at a time"):
        written = conversed(single, Sampling(4, 0.0))
    assert [len(turns) for turns in written] == [TURNS] * 12
    scripted = ScriptedEngine(lambda request, turn: "ab")
    assert [len(turns) for turns in conversed(scripted, Sampling(4))] == [TURNS] * 12


def test_nothing_asked_is_nothing_done(llama: Any, hf_tokenizer: Any) -> None:
    TransformersEngine(llama, hf_tokenizer).converse([], Sampling(4), lambda ready: pytest.fail("asked"))
    assert TransformersEngine(llama, hf_tokenizer).generate([], Sampling(4)) == []
