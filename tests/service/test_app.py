"""Routes for people and operators: feedback, health, metrics, the page and what it reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sleuth.cli import main
from sleuth.datasets import load_questions
from sleuth.service.store import Feedback, Store, verdicts
from support.contracts import QUESTION, SEARCHES, agent_that, by_question

Serve = Callable[..., Any]


def ask(url: str, question: str = QUESTION) -> dict[str, Any]:
    body = {"model": "contracts", "input": question}
    reply = httpx.post(f"{url}/v1/responses", json=body).raise_for_status()
    return dict(reply.json())


def test_health_and_metrics(serve: Serve):
    url = serve().url
    assert httpx.get(f"{url}/health").json() == {"status": "ready"}
    ask(url)
    text = httpx.get(f"{url}/metrics").text
    assert 'sleuth_episodes_total{model="contracts",outcome="supported"}' in text
    assert 'sleuth_episode_searches_total{model="contracts"}' in text
    assert 'sleuth_request_seconds_count{path="/v1/responses",status="200"}' in text
    assert QUESTION not in text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/health", 405),
        ("GET", "/static/../app.py", 404),
        ("GET", "/v1/models/x", 404),
    ],
)
def test_other_paths_and_methods_are_refused_in_one_line(method: str, path: str, status: int, serve: Serve):
    reply = httpx.request(method, serve().url + path)
    assert reply.status_code == status
    assert "\n" not in reply.json()["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"model": 1}', b"\xff", b'{"a":' * 5000])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/feedback"])
def test_a_body_that_cannot_be_read_gets_400(path: str, body: bytes, serve: Serve):
    reply = httpx.post(serve().url + path, content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400
    assert "cannot be read" in reply.json()["error"]["message"]


def test_fields_that_openai_allows_to_be_null_may_be_null(serve: Serve):
    names = ("stream", "stream_options", "n", "seed", "tools", "temperature", "top_p", "max_tokens")
    body = {"model": "contracts", "messages": [{"role": "user", "content": QUESTION}], **dict.fromkeys(names)}
    reply = httpx.post(f"{serve().url}/v1/chat/completions", json=body)
    assert (reply.status_code, reply.json().get("object")) == (200, "chat.completion")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/feedback"])
def test_a_form_of_another_site_is_refused(path: str, serve: Serve):
    reply = httpx.post(serve().url + path, content=b"{}", headers={"Content-Type": "text/plain"})
    assert reply.status_code == 415
    assert "access-control-allow-origin" not in reply.headers


def test_a_large_body_gets_413(serve: Serve):
    reply = httpx.post(f"{serve(max_body_bytes=100).url}/v1/responses", content=b"x" * 101)
    assert reply.status_code == 413
    assert "more than 100 bytes" in reply.json()["error"]["message"]


def test_the_page_is_open_and_its_data_needs_the_token(serve: Serve):
    url = serve(token="secret").url
    page = httpx.get(url)
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert httpx.get(f"{url}/static/app.js").status_code == 200
    for path in ("/api/about", "/api/episodes?source=served", "/v1/models", "/metrics"):
        assert httpx.get(url + path).status_code == 401


def test_asked_questions_are_stored_and_can_be_opened(serve: Serve):
    served = serve()
    ask(served.url)
    row = found(served.url, 1)[0]
    assert row["question"] == QUESTION
    view = httpx.get(f"{served.url}/api/episode", params={"source": "served", "row": row["row"]}).json()
    assert [segment["author"] for segment in view["episode"]["segments"]] == [
        "prompt",
        "policy",
        "world",
        "policy",
    ]
    assert view["episode"]["segments"][2]["hits"][0]["passage"]["id"] == "p1"


def found(url: str, count: int, **query: str) -> list[dict[str, Any]]:
    """The rows of the stored episodes, once there are `count`."""
    for _ in range(100):
        page = httpx.get(f"{url}/api/episodes", params={"source": "served", **query}).json()
        if page["total"] >= count:
            return list(page["rows"])
    raise AssertionError(f"{page['total']} episodes")


@pytest.mark.parametrize(
    "query",
    ["source=other", "source=served&flags=odd", "source=served&sort=odd", "source=served&offset=-1", ""],
)
def test_a_bad_query_is_refused(query: str, serve: Serve):
    reply = httpx.get(f"{serve().url}/api/episodes?{query}")
    assert reply.status_code in (400, 404)


def test_feedback_becomes_questions_with_right_and_rejected_answers(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    wrong = [SEARCHES[0], "<evaluate>x</evaluate><answer>Tom Reed</answer>"]
    served = serve({"contracts": agent_that(by_question({"contract": wrong, "born": SEARCHES}))})
    first, second, third = ask(served.url), ask(served.url, "Who was born?"), ask(served.url, "Is it born?")
    for episode, thumb, correction in (
        (first["id"], "up", ""),
        (first["id"], "down", "Ann Bell"),
        (second["id"], "up", ""),
        (third["id"], "down", ""),
    ):
        body = {"episode": episode, "thumb": thumb, "correction": correction}
        assert httpx.post(f"{served.url}/feedback", json=body).json() == {"stored": True}
    output = tmp_path / "questions.jsonl"
    assert main(["feedback", str(served.store), "-o", str(output)]) == 0
    assert "2 questions with 1 rejected answer" in capsys.readouterr().out
    questions = load_questions(f"jsonl:{output}", strict=True).questions
    assert [(q.text, q.answers, q.rejected) for q in questions] == [
        (QUESTION, ("Ann Bell",), ("Tom Reed",)),
        ("Who was born?", ("Ann Bell",), ()),
    ]
    assert questions[0].gold_ids == ("p1",)
    assert questions[0].hops[0].query == "who signed the 2019 contract"
    assert main(["feedback", str(served.store), "-o", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 1


def test_feedback_finds_a_chat_completion_and_a_reply_from_before_a_restart(serve: Serve, tmp_path: Path):
    body = {"model": "contracts", "messages": [{"role": "user", "content": QUESTION}]}
    served = serve()
    name = httpx.post(f"{served.url}/v1/chat/completions", json=body).json()["id"]
    verdict = {"episode": name, "thumb": "up"}
    assert httpx.post(f"{served.url}/feedback", json=verdict).json() == {"stored": True}
    copy = tmp_path / "copy"
    shutil.copytree(served.store, copy, ignore=shutil.ignore_patterns(".lock"))
    store = Store(copy)
    assert store.names == set(verdicts(copy)) == {name.removeprefix("chatcmpl-")}
    store.close()


@pytest.mark.parametrize("episode", ["resp_0", "chatcmpl-0", "x" * 100])
def test_feedback_on_an_unknown_episode_gets_404(episode: str, serve: Serve):
    served = serve()
    reply = httpx.post(f"{served.url}/feedback", json={"episode": episode, "thumb": "up"})
    assert reply.status_code == 404
    assert reply.json()["error"]["message"].startswith(f"unknown episode {episode!r}")
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert not (served.store / "feedback.jsonl").read_bytes()


def test_a_store_without_episodes_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["feedback", str(tmp_path / "none"), "-o", str(tmp_path / "x")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("line", ['{"thumb": "up"}', '{"episode": "a", "thumb": "sideways"}', '"up"', "up"])
def test_a_damaged_verdict_is_one_line(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    Store(tmp_path).close()
    (tmp_path / "feedback.jsonl").write_text(line + "\n")
    assert main(["feedback", str(tmp_path), "-o", str(tmp_path / "x")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_last_verdict_counts(tmp_path: Path):
    store = Store(tmp_path)
    for thumb in ("up", "down"):
        store.judge(Feedback("a", thumb))  # type: ignore[arg-type]
    store.close()
    assert json.loads((tmp_path / "feedback.jsonl").read_text().splitlines()[-1])["thumb"] == "down"
