"""Follow-up questions: the server, the chat and the feedback keep the conversation they belong to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import openai
import pytest

from sleuth.agent import Agent
from sleuth.citations import NOT_FOUND, UNSUPPORTED
from sleuth.cli import main
from sleuth.datasets import load_questions
from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.service.wire import ChatRequest
from sleuth.types import Exchange
from support.contracts import QUESTION, SEARCHES, agent_that

Serve = Callable[..., Any]
FOLLOW_UP = "And where was she born?"
OPENING = f"(Earlier in this conversation:\nQ: {QUESTION}\nA: Ann Bell)\n{FOLLOW_UP}"
USER = {"role": "user", "content": QUESTION}
NEXT = {"role": "user", "content": FOLLOW_UP}


class Noting(ScriptedEngine):
    """Notes the requests it answers."""

    def __init__(self) -> None:
        super().__init__(SEARCHES)
        self.requests: list[Request] = []

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        self.requests.append(request)
        return await super().sample(request, sampling)


@pytest.fixture
def engine() -> Noting:
    return Noting()


@pytest.fixture
def api(engine: Noting, serve: Serve) -> openai.OpenAI:
    agent = agent_that()
    url = serve({"contracts": Agent(agent.recipe, engine, agent.retriever)}).url
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def chat(api: openai.OpenAI, *messages: Any) -> str:
    return (
        api.chat.completions.create(model="contracts", messages=list(messages)).choices[0].message.content
        or ""
    )


def test_a_chat_completion_reads_the_earlier_messages(api: openai.OpenAI, engine: Noting):
    answer = chat(api, USER)
    assert answer == "Ann Bell [1]"
    chat(api, USER, {"role": "assistant", "content": answer}, NEXT)
    assert OPENING in engine.requests[2].messages[0].content
    assert [message.role for message in engine.requests[2].messages] == ["user"]


def test_a_response_reads_its_earlier_output(api: openai.OpenAI, engine: Noting):
    first = api.responses.create(model="contracts", input=QUESTION)
    turns: Any = [USER, *(item.model_dump() for item in first.output), NEXT]
    with api.responses.stream(model="contracts", input=turns) as stream:
        assert stream.get_final_response().output_text == "Ann Bell [1]"
    assert OPENING in engine.requests[2].messages[0].content


def test_a_single_question_is_token_for_token_the_one_without_a_conversation(
    api: openai.OpenAI, engine: Noting
):
    chat(api, {"role": "system", "content": "You are a pirate."}, USER)
    alone = agent_that()
    record = alone.world().record(alone.ask(QUESTION).trajectory.question)
    record.prompt([], lambda _: alone.recipe.protocol.prompt(record.question))
    assert list(engine.requests[0].tokens) == record.tokens


def test_a_previous_response_id_is_refused(api: openai.OpenAI):
    with pytest.raises(openai.BadRequestError, match="send the earlier messages as input"):
        api.responses.create(model="contracts", input=FOLLOW_UP, previous_response_id="resp_1")


@pytest.mark.parametrize(
    ("messages", "history"),
    [
        ([("user", "a"), ("assistant", "b [1][2]"), ("user", "c")], [("a", "b")]),
        ([("user", "a"), ("assistant", f"b [1]\n\n{UNSUPPORTED}"), ("user", "c")], [("a", "b")]),
        ([("user", "a"), ("assistant", NOT_FOUND), ("user", "c")], [("a", "")]),
        ([("user", "a"), ("assistant", "b"), ("tool", "x"), ("assistant", "d"), ("user", "c")], [("a", "d")]),
        ([("system", "x"), ("user", "a"), ("user", "b"), ("user", "c")], [("a", ""), ("b", "")]),
        ([("assistant", "hello"), ("user", " "), ("assistant", "?"), ("user", "c")], []),
        ([("user", "a"), ("assistant", None), ("user", "c"), ("assistant", "begun")], [("a", "")]),
    ],
)
def test_exchanges_of_messages(messages: list[tuple[str, str | None]], history: list[tuple[str, str]]):
    body = {"messages": [{"role": role, "content": content} for role, content in messages]}
    request = msgspec.convert(body, ChatRequest)
    assert request.history == history
    assert request.question == "c"


def test_an_agent_reads_the_exchanges_of_earlier_replies():
    first = agent_that().ask(QUESTION)
    assert first.exchange == (QUESTION, "Ann Bell")
    reply = agent_that().ask(FOLLOW_UP, history=[first.exchange])
    assert OPENING in reply.trajectory.segments[0].text
    assert reply.trajectory.question.text == FOLLOW_UP
    assert reply.trajectory.question.history == (Exchange(QUESTION, "Ann Bell"),)


def test_a_corrected_follow_up_is_exported_with_its_conversation(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    served = serve()
    for before in ([USER, {"role": "assistant", "content": "Ann Bell"}], []):
        reply = httpx.post(
            f"{served.url}/v1/responses", json={"model": "contracts", "input": [*before, NEXT]}
        ).json()
        httpx.post(f"{served.url}/feedback", json={"episode": reply["id"], "thumb": "up"}).raise_for_status()
    output = tmp_path / "questions.jsonl"
    assert main(["feedback", str(served.store), "-o", str(output)]) == 0
    follow_up, alone = load_questions(f"jsonl:{output}", strict=True).questions
    assert (follow_up.text, follow_up.history) == (FOLLOW_UP, (Exchange(QUESTION, "Ann Bell"),))
    assert alone.history == ()


def test_a_chat_searches_with_what_was_asked_before(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    source, index = tmp_path / "passages.jsonl", str(tmp_path / "idx")
    source.write_text(json.dumps({"id": "p1", "title": "Emma", "text": "Emma is a novel by Ann Bell."}))
    assert main(["index", str(source), "-o", index, "--json"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("Who wrote Emma?\nAnd when?\n/new\nIs tea a drink?\n"))
    small = ["--set", "scale.max_new_tokens=4", "--set", "scale.max_context=1000"]
    assert main(["chat", index, "--model", str(tiny_model), *small]) == 0
    shown = capsys.readouterr().out.splitlines()
    searches = [line.removeprefix("searching: ") for line in shown if line.startswith("searching: ")]
    assert {"And when?", "Who wrote Emma? And when?"} <= set(searches[1:-1])
    assert searches[-1] == "Is tea a drink?"
