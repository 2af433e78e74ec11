"""What is read in one turn of the event loop is answered in the next, in order, and never for long."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25, open_index
from sleuth.serving.batching import AT_ONCE
from sleuth.serving.limits import Limits
from sleuth.serving.rounds import Rounds
from sleuth.serving.service import Service
from sleuth.types import Hit


def play(open_retriever: Callable[[], Retriever], scene: Callable[[Rounds], Awaitable[None]]) -> None:
    async def run() -> None:
        opened = asyncio.Event()
        service = Service(open_retriever, Limits(cache_bytes=0))
        service.start(opened.set)
        await opened.wait()
        await asyncio.wait_for(scene(Rounds(service)), 20)
        await service.close()

    asyncio.run(run())


def body(query: str) -> bytes:
    return json.dumps({"query": query, "topk": 1}).encode()


def found(reply: bytes | None) -> str:
    assert reply is not None
    return str(json.loads(reply)["result"][0][0]["id"])


def test_all_are_answered_in_order_a_few_in_each_turn(index: Path):
    async def scene(rounds: Rounds) -> None:
        replies: list[bytes | None] = []
        for i in range(40):
            rounds.ask(body(f"town {i}"), replies.append)
        assert replies == []
        turns = 0
        while len(replies) < 40:
            before = len(replies)
            await asyncio.sleep(0)
            assert len(replies) - before <= AT_ONCE
            turns += 1
        assert turns >= 3
        assert [found(reply) for reply in replies] == [f"town-{i}" for i in range(40)]

    play(lambda: open_index(index), scene)


def test_a_round_ends_soon_where_searching_is_slow(index: Path):
    class Slow(BM25):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            time.sleep(0.004)
            return super().search(queries, k)

    async def scene(rounds: Rounds) -> None:
        replies: list[bytes | None] = []
        for i in range(6):
            rounds.ask(body(f"a town of many houses and one river, with the number {i}"), replies.append)
        while not replies:
            await asyncio.sleep(0)
        assert len(replies) <= 2
        while len(replies) < 6:
            await asyncio.sleep(0)

    play(lambda: Slow(path=str(index)), scene)


def test_what_has_no_answer_here_keeps_nobody_from_theirs(index: Path):
    class Faulty(BM25):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            if queries == ["break"]:
                raise ZeroDivisionError
            return super().search(queries, k)

    async def scene(rounds: Rounds) -> None:
        replies: list[bytes | None] = []
        for asked in (body("radium"), b"no JSON", body("break"), body("copper")):
            rounds.ask(asked, replies.append)
        while len(replies) < 4:
            await asyncio.sleep(0)
        assert replies[1:3] == [None, None]
        assert [found(replies[0]), found(replies[3])] == ["curie", "7"]

    play(lambda: Faulty(path=str(index)), scene)


def test_an_answer_that_cannot_be_sent_takes_no_other_along(index: Path):
    async def scene(rounds: Rounds) -> None:
        faults: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        replies: list[bytes | None] = []
        rounds.ask(body("radium"), lambda _: replies.remove(b"none"))
        rounds.ask(body("copper"), replies.append)
        while not replies:
            await asyncio.sleep(0)
        assert found(replies[0]) == "7"
        assert [type(fault["exception"]) for fault in faults] == [ValueError]

    play(lambda: open_index(index), scene)


def test_an_answer_may_ask_again(index: Path):
    async def scene(rounds: Rounds) -> None:
        replies: list[bytes | None] = []

        def answer(reply: bytes | None) -> None:
            replies.append(reply)
            if len(replies) < 3:
                rounds.ask(body(f"town {len(replies)}"), answer)

        rounds.ask(body("town 0"), answer)
        while len(replies) < 3:
            await asyncio.sleep(0)
        assert [found(reply) for reply in replies] == ["town-0", "town-1", "town-2"]

    play(lambda: open_index(index), scene)
