"""Agent.stream: the events of an episode as they happen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sleuth.agent import Agent, Reply
from sleuth.engines import open_engine
from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.events import Found, Searching, Writing, Written
from sleuth.errors import DataError
from sleuth.types import Action, Passage
from support.contracts import QUESTION, agent_that


async def events_of(agent: Agent, question: str = QUESTION) -> list[Any]:
    return [event async for event in agent.stream(question)]


def test_events_follow_the_episode():
    events = asyncio.run(events_of(agent_that()))
    kinds = [type(event) for event in events if not isinstance(event, Writing)]
    assert kinds == [Written, Action, Searching, Found, Written, Action, Reply]
    found = next(event for event in events if isinstance(event, Found))
    assert found.hits[0].passage.id == "p1"
    notes = [
        f.text for event in events if isinstance(event, Written) for f in event.fields if f.tag == "evaluate"
    ]
    assert notes == ["Doc 1 names the signer."]
    assert events[-1].trajectory == agent_that().ask(QUESTION).trajectory


def test_pieces_of_a_turn_make_the_turn():
    pieces = ""
    for event in asyncio.run(events_of(agent_that())):
        if isinstance(event, Writing):
            pieces += event.text
        elif isinstance(event, Written):
            assert pieces == event.text
            pieces = ""


def test_a_real_model_writes_piece_by_piece(tiny_model: Any):
    agent = agent_that(recipe="rag/cpu")
    real = Agent(
        agent.recipe.sized(max_new_tokens=12, max_context=900), open_engine(str(tiny_model)), agent.retriever
    )
    events = asyncio.run(events_of(real))
    text = "".join(event.text for event in events if isinstance(event, Writing))
    (written,) = [event for event in events if isinstance(event, Written)]
    assert len([event for event in events if isinstance(event, Writing)]) > 1
    assert written.text.startswith(text[:-1])


def test_an_endpoint_without_a_tokenizer_is_shown_whole_passages():
    """Its limits are in tokens and its contexts are counted in bytes."""
    long = Passage("long", "Contract", "The 2019 contract has many words. " * 14 + "Ann Bell signed it.")
    agent = agent_that(documents=[long])
    short = agent.recipe.sized(max_context=1000, max_new_tokens=100, max_passage_tokens=200)
    reply = Agent(short, agent.engine, agent.retriever).ask(QUESTION)
    assert reply.trajectory.hits[0].passage.text.endswith("Ann Bell signed it.")


class Endless(ScriptedEngine):
    """Waits for ever and records that it was cancelled."""

    cancelled = False

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise AssertionError


def test_closing_the_stream_ends_the_episode():
    agent = agent_that()
    engine = Endless([])

    async def first_event() -> None:
        stream = Agent(agent.recipe, engine, agent.retriever).stream(QUESTION)
        waiting = asyncio.ensure_future(anext(stream))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(first_event())
    assert engine.cancelled


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused(question: str):
    with pytest.raises(DataError, match="empty"):
        asyncio.run(events_of(agent_that(), question))
