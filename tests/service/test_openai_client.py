"""The server as OpenAI's own client sees it, sync and async."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest

from sleuth.agent import Agent
from sleuth.citations import NO_ANSWER, UNSUPPORTED
from sleuth.engines.base import Completion, Message, Request, Sampling
from sleuth.engines.openai import OpenAIEngine
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.events import Found, Searching
from sleuth.service.responses import Writer
from sleuth.service.wire import ResponsesRequest
from support.contracts import QUESTION, SEARCHES, agent_that

Serve = Callable[..., Any]
ASK: dict[str, Any] = {"model": "contracts", "messages": [{"role": "user", "content": QUESTION}]}
SUPPORTED = "Ann Bell [1]"


def client(url: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", **{"api_key": "none", "max_retries": 0} | options)


def aclient(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_a_chat_completion_cites_its_evidence(serve: Serve):
    reply = client(serve().url).chat.completions.create(**ASK)
    message = reply.choices[0].message
    assert message.content == SUPPORTED
    (annotation,) = message.annotations or []
    cited = annotation.url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert (cited.title, cited.url) == ("Harbour contract", "sleuth://passage/p1")
    assert reply.usage is not None
    assert reply.usage.completion_tokens == sum(map(len, SEARCHES))
    assert reply.sleuth["status"] == "supported"  # type: ignore[attr-defined]
    assert reply.sleuth["steps"][0] == {"kind": "search", "text": "who signed the 2019 contract"}  # type: ignore[attr-defined]


def test_a_streamed_completion_is_the_same_answer(serve: Serve):
    stream = client(serve().url).chat.completions.create(
        **ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == SUPPORTED
    turns = "".join(getattr(c.choices[0].delta, "reasoning_content", None) or "" for c in chunks if c.choices)
    assert turns == "".join(SEARCHES)
    assert chunks[-1].usage is not None
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert len({c.id for c in chunks}) == 1


def test_turns_that_end_before_the_answer_finish_by_length(serve: Serve):
    url = serve({"contracts": agent_that([SEARCHES[0]] * 9)}).url
    reply = client(url).chat.completions.create(**ASK)
    assert reply.choices[0].finish_reason == "length"
    chunks = list(client(url).chat.completions.create(**ASK, stream=True))
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_response_has_searches_notes_and_citations_as_items(serve: Serve):
    reply = client(serve().url).responses.create(model="contracts", input=QUESTION)
    assert reply.output_text == SUPPORTED
    kinds = [item.type for item in reply.output]
    assert kinds == ["reasoning", "file_search_call", "reasoning", "message"]
    first, search, note, message = reply.output
    assert first.summary[0].text == "I look it up."  # type: ignore[union-attr]
    assert search.queries == ["who signed the 2019 contract"]  # type: ignore[union-attr]
    assert search.results[0].file_id == "p1"  # type: ignore[union-attr,index]
    assert note.summary[0].text == "Doc 1 names the signer."  # type: ignore[union-attr]
    (annotation,) = message.content[0].annotations  # type: ignore[union-attr]
    assert (annotation.type, annotation.file_id, annotation.filename) == (
        "file_citation",
        "p1",
        "Harbour contract",
    )
    assert reply.output_text[annotation.index :] == "[1]"
    assert annotation.quote == "Ann Bell signed the 2019 contract."


def test_a_streamed_response_builds_the_same_response(serve: Serve):
    with client(serve().url).responses.stream(model="contracts", input=QUESTION) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == SUPPORTED
    assert [item.type for item in final.output] == ["reasoning", "file_search_call", "reasoning", "message"]
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == sorted(
        event.sequence_number for event in events if hasattr(event, "sequence_number")
    )
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.index("response.file_search_call.searching") < kinds.index(
        "response.file_search_call.completed"
    )
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == SUPPORTED


def test_the_async_client_works_the_same_way(serve: Serve):
    async def both() -> tuple[str | None, str]:
        async with aclient(serve().url) as api:
            chat = await api.chat.completions.create(**ASK)
            async with api.responses.stream(model="contracts", input=QUESTION) as stream:
                final = await stream.get_final_response()
            return chat.choices[0].message.content, final.output_text

    assert asyncio.run(both()) == (SUPPORTED, SUPPORTED)


def test_models_are_listed_by_name(serve: Serve):
    url = serve({"contracts": agent_that(), "team/other": agent_that()}).url
    assert [model.id for model in client(url).models.list()] == ["contracts", "team/other"]
    assert client(url).models.retrieve("team/other").id == "team/other"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("<evaluate>x</evaluate><answer>Tom Reed</answer>", f"Tom Reed\n\n{UNSUPPORTED}"),
        ("<evaluate>x</evaluate><think>nothing</think>", NO_ANSWER),
    ],
)
def test_doubt_is_part_of_the_text(answer: str, text: str, serve: Serve):
    url = serve({"contracts": agent_that([SEARCHES[0], *[answer] * 3])}).url
    assert client(url).chat.completions.create(**ASK).choices[0].message.content == text


def test_the_last_user_message_is_the_question(serve: Serve):
    parts = [{"type": "input_text", "text": QUESTION}]
    given = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": parts},
    ]
    assert client(serve().url).responses.create(model="contracts", input=given).output_text == SUPPORTED


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"model": "contract"}, 404, "did you mean 'contracts'"),
        ({"messages": []}, 400, "no question"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "no question"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]}, 400, "no question"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]},
            400,
            "only text is read",
        ),
        ({"model": "x" * 256}, 400, "model"),
        ({"messages": [{"role": "user", "content": "x" * 9000}]}, 400, "8000 characters"),
        ({"n": 2}, 400, "n must be 1"),
        ({"temperature": 3}, 400, "temperature"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools are not supported"),
        ({"response_format": {"type": "json_object"}}, 400, "answers are text"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_request_gets_one_line(
    change: dict[str, Any], status: int, reason: str, stream: bool, serve: Serve
):
    with pytest.raises(openai.APIStatusError) as caught:
        client(serve().url).chat.completions.create(**ASK | change, stream=stream)
    assert caught.value.status_code == status
    assert reason in caught.value.message
    assert "\n" not in caught.value.message


def test_a_token_is_needed_where_one_is_set(serve: Serve):
    url = serve(token="secret").url
    with pytest.raises(openai.AuthenticationError) as caught:
        client(url).models.list()
    assert caught.value.body["message"].startswith("a token is needed")  # type: ignore[index]
    assert client(url, api_key="secret").models.list().data[0].id == "contracts"


class Slow(ScriptedEngine):
    """Waits before each turn until the test opens the gate; counts the calls that wait."""

    waiting = 0
    gate: threading.Event

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        self.waiting += 1
        try:
            while not self.gate.is_set():
                await asyncio.sleep(0.005)
        finally:
            self.waiting -= 1
        return await super().sample(request, sampling)


@pytest.fixture
def slow() -> Slow:
    engine = Slow(SEARCHES)
    engine.gate = threading.Event()
    return engine


def with_engine(engine: ScriptedEngine) -> dict[str, Agent]:
    agent = agent_that()
    return {"contracts": Agent(agent.recipe, engine, agent.retriever)}


def eventually(is_true: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_true():
            return True
        time.sleep(0.005)
    return False


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_slot(stream: bool, slow: Slow, serve: Serve):
    url = serve(with_engine(slow), max_running=1).url

    async def leave() -> None:
        async with aclient(url) as api:
            asking = asyncio.ensure_future(_read_all(api, stream))
            while not slow.waiting:
                await asyncio.sleep(0.005)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(leave())
    assert eventually(lambda: slow.waiting == 0, seconds=1)
    slow.gate.set()
    assert client(url).chat.completions.create(**ASK).choices[0].message.content == SUPPORTED


async def _read_all(api: openai.AsyncOpenAI, stream: bool) -> None:
    reply = await api.chat.completions.create(**ASK, stream=stream)
    if stream:
        async for _ in reply:  # type: ignore[union-attr]
            pass


class Chatty(ScriptedEngine):
    """Writes more than a connection holds, at its first call."""

    calls = 0

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        self.calls += 1
        for _ in range(200 if self.calls == 1 else 0):
            if request.on_text:
                request.on_text("x" * 200_000)
            await asyncio.sleep(0.001)
        return await super().sample(request, sampling)


def test_a_client_that_stops_reading_loses_its_slot(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sleuth.service.app.READING_S", 0.0)
    url = serve(with_engine(Chatty(SEARCHES)), max_running=1, timeout_s=1.0).url
    body = json.dumps({"model": "contracts", "input": QUESTION, "stream": True})
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as stalled:
        stalled.sendall(f"{head}\r\n\r\n{body}".encode())
        time.sleep(0.5)

        def is_free() -> bool:
            try:
                return client(url).chat.completions.create(**ASK).choices[0].message.content == SUPPORTED
            except openai.InternalServerError:
                return False

        assert any(is_free() for _ in range(5))


def test_too_many_waiting_requests_get_429(slow: Slow, serve: Serve):
    url = serve(with_engine(slow), max_running=1, max_waiting=1).url

    async def three() -> list[Any]:
        async with aclient(url) as api:
            asking = []
            for _ in range(3):
                asking.append(asyncio.ensure_future(api.chat.completions.create(**ASK)))
                await asyncio.sleep(0.1)
            slow.gate.set()
            return await asyncio.gather(*asking, return_exceptions=True)

    first, second, third = asyncio.run(three())
    assert isinstance(third, openai.RateLimitError)
    assert first.choices[0].message.content == second.choices[0].message.content == SUPPORTED


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_takes_too_long_is_ended(stream: bool, slow: Slow, serve: Serve):
    url = serve(with_engine(slow), timeout_s=0.2).url
    with pytest.raises(openai.APIError, match=r"not answered within 0\.2 s"):
        list(client(url).chat.completions.create(**ASK, stream=stream))
    assert eventually(lambda: slow.waiting == 0)


def test_a_fault_of_the_model_is_one_line(serve: Serve):
    url = serve({"contracts": agent_that([])}).url
    with pytest.raises(openai.APIStatusError, match="the script has 0 replies"):
        client(url).chat.completions.create(**ASK)
    with client(url).responses.stream(model="contracts", input=QUESTION) as stream:
        events = list(stream)
    assert events[-1].type == "response.failed"
    assert "the script has 0 replies" in events[-1].response.error.message  # type: ignore[union-attr]


class Crashing(ScriptedEngine):
    """Has a defect."""

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        raise ZeroDivisionError


def test_a_crash_ends_a_stream_with_an_error_and_counts_as_failed(serve: Serve):
    url = serve(with_engine(Crashing([]))).url
    with client(url).responses.stream(model="contracts", input=QUESTION) as stream:
        events = list(stream)
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message.startswith("internal error")  # type: ignore[union-attr]
    with pytest.raises(openai.APIError, match="internal error"):
        list(client(url).chat.completions.create(**ASK, stream=True))
    with pytest.raises(openai.InternalServerError, match="internal error"):
        client(url).chat.completions.create(**ASK)
    failed = 'sleuth_episodes_total{model="contracts",outcome="failed"}'
    counts = [line.split()[-1] for line in httpx.get(f"{url}/metrics").text.splitlines() if failed in line]
    assert float(counts[0]) >= 3


def test_two_searches_at_once_with_one_query_are_two_items():
    writer = Writer("a", ResponsesRequest(input=QUESTION), 0)
    for event in (Searching("x"), Searching("x"), Found("x", ()), Found("x", ())):
        writer.events_of(event)
    output = writer.response("completed")["output"]
    assert [(item["queries"], item["status"]) for item in output] == [(["x"], "completed")] * 2


def test_a_hundred_streams_at_once_are_all_whole(serve: Serve):
    url = serve(max_running=100).url

    async def many() -> list[str]:
        async with aclient(url) as api:

            async def one() -> str:
                async with api.responses.stream(model="contracts", input=QUESTION) as stream:
                    return (await stream.get_final_response()).output_text

            return await asyncio.gather(*(one() for _ in range(100)))

    assert asyncio.run(many()) == [SUPPORTED] * 100


def test_an_engine_over_an_endpoint_passes_pieces_on_as_they_arrive(serve: Serve):
    pieces: list[str] = []
    engine = OpenAIEngine(serve().url, "contracts", context_length=10_000)
    request = Request([5], messages=(Message("user", QUESTION),), on_text=pieces.append)
    (done,) = engine.generate([request], Sampling())
    assert pieces == ["Ann", " Bell", " [1]"]
    assert (done.text, done.stop) == (SUPPORTED, "eos")


def test_an_agent_over_an_endpoint_streams_its_turns(serve: Serve):
    agent = agent_that(recipe="rag/cpu")
    upstream = OpenAIEngine(serve().url, "contracts", context_length=100_000)
    url = serve({"second": Agent(agent.recipe, upstream, agent.retriever)}).url
    with client(url).responses.stream(model="second", input=QUESTION) as stream:
        deltas = [event.delta for event in stream if event.type == "response.reasoning_text.delta"]
    assert len(deltas) > 3
    assert "".join(deltas).startswith("Ann Bell")
