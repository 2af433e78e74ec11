"""Remote against our own server, and against recorded answers of servers that fail."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import RetrievalError
from sleuth.fields import FieldError
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.servers.remote import Remote, read_hits
from sleuth.types import Hit, Passage

PASSAGES = [
    Passage("curie", "Marie Curie", "She discovered radium. "),
    Passage("b", '"Heroes" (album)', "\nRecorded in Berlin."),
    Passage("c", "", "Copper of Chile\nand radium"),
    Passage("d", " two\nlines ", "gold"),
]


def echo(request: Any) -> dict[str, Any]:
    """An answer in which every query finds itself."""
    queries = request.json["queries"]
    return {"result": [[{"document": {"id": q, "contents": f'"{q}"\ntext'}, "score": 2.0}] for q in queries]}


ECHO = ("POST", "/retrieve", 200, echo)


def answer(status: int, body: Any, **headers: str) -> tuple[Any, ...]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return ("POST", "/retrieve", status, body, sent)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[tuple[Remote, BM25]]:
    """Our own server's process on an index, and the index itself."""
    build_index(PASSAGES, tmp_path / "i")
    command = [sys.executable, "-m", "sleuth", "serve-retriever", str(tmp_path / "i"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    yield Remote(url), BM25(str(tmp_path / "i"))
    process.terminate()
    process.wait(timeout=40)


def test_our_own_server_gives_what_the_index_gives(ours: tuple[Remote, BM25]):
    remote, local = ours
    queries = ["radium", "", "berlin album", "AND (", "Curie \ud800", "gold", "radium"]
    for k in (1, 3, 1000):
        assert remote.search(queries, k) == local.search(queries, k)
    assert Remote(remote.url, batch=2).search(queries, 2) == local.search(queries, 2)
    identity = remote.identity()
    assert (identity["retriever"], identity["url"]) == ("remote", remote.url)
    described = {key.removeprefix("of."): value for key, value in identity.items() if key.startswith("of.")}
    assert described == local.identity()
    with pytest.raises(RetrievalError, match=r"refused the request: status 422: .*<= 1000.*topk"):
        remote.search(["radium"], 1001)


def test_requests_hold_each_query_once_in_batches(recorded: Any):
    server = recorded(ECHO)
    remote = Remote(server.url, batch=2)
    found = remote.search(["a", "b", "a", " ", "c"], 3)
    a, b, c = (Passage(name, name, "text") for name in "abc")
    assert [[hit.passage for hit in hits] for hits in found] == [[a], [b], [a], [], [c]]
    found[0].clear()
    assert len(found[2]) == 1  # equal queries get lists of their own
    bodies = sorted((request.json for request in server.requests), key=lambda body: body["queries"])
    assert bodies == [{"queries": q, "topk": 3, "return_scores": True} for q in (["a", "b"], ["c"])]
    assert "Authorization" not in server.requests[0].headers


def test_many_batches_run_concurrently(recorded: Any):
    together = threading.Barrier(4, timeout=20)

    def wait(request: Any) -> Any:
        together.wait()
        return echo(request)

    server = recorded(("POST", "/retrieve", 200, wait))
    found = Remote(server.url, batch=1).search(list("abcd"), 1)
    assert [hits[0].passage.id for hits in found] == list("abcd")


def test_the_token_comes_from_the_environment(recorded: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret\n")  # a line end after the token is not part of it
    server = recorded(ECHO)
    Remote(server.url, token_env="MY_TOKEN").search(["a"], 1)
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret"


def test_a_failing_or_busy_server_is_asked_again(recorded: Any, pauses: list[float]):
    truncated = answer(200, b'{"res', Content_Length="100")
    busy = answer(503, {"error": "busy"}, Retry_After="4")
    server = recorded(answer(502, b"<html>oops</html>"), busy, truncated, ECHO)
    assert Remote(server.url).search(["a"], 1)[0][0].passage.id == "a"
    assert len(server.requests) == 4
    assert pauses[1] == 4.0
    assert pauses[0] < 1 < pauses[2]
    server = recorded(answer(503, {"error": "too busy"}))
    message = r"^http://127.*/retrieve failed: status 503: too busy \(tried 3 times\)$"
    with pytest.raises(RetrievalError, match=message):
        Remote(server.url, attempts=3).search(["a"], 1)
    assert len(server.requests) == 3


def test_a_silent_server_times_out(recorded: Any, pauses: list[float]):
    over = threading.Event()

    def silent(_: Any) -> dict[str, Any]:
        over.wait(60)
        return {}

    server = recorded(("POST", "/retrieve", 200, silent))
    with pytest.raises(RetrievalError, match=r"ReadTimeout: timed out \(tried 2 times\)"):
        Remote(server.url, timeout_s=0.2, attempts=2).search(["a"], 1)
    over.set()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (422, {"error": "topk is too large"}, "status 422: topk is too large"),
        (404, b"", "status 404: Not Found"),
        (302, b"", "status 302: Found"),
        (418, b"<p>\n\xff", "status 418: <p>"),
    ],
)
def test_a_refusal_is_final(recorded: Any, status: int, body: Any, message: str):
    server = recorded(answer(status, body))
    with pytest.raises(RetrievalError, match=f"refused the request: {message}") as caught:
        Remote(server.url).search(["a"], 1)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == 1


HUGE = b'{"result": [[{"document": {"id": "a", "contents": "x"}, "score": 1%s}]]}' % (b"0" * 400)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"result": []}, "sent no list for each of 1 queries"),
        ({"result": None}, "no list"),
        (b"not json", "no list .* 'not json'"),
        ({"result": [[3]]}, "something else than passages: document"),
        ({"result": [[{"document": {"id": "a"}}]]}, "something else than passages: text: missing"),
        (b'{"result": [[{"document": {"id": "a", "contents": "x"}, "score": "high"}]]}', "must be a number"),
        (HUGE, "score: must be a number"),
    ],
)
def test_answers_in_an_unknown_form(recorded: Any, body: Any, message: str):
    server = recorded(answer(200, body))
    with pytest.raises(RetrievalError, match=message) as caught:
        Remote(server.url).search(["a"], 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "route", "info"),
    [
        ("", "/retrieve", "/info"),
        ("?a=b", "/retrieve?a=b", "/info"),
        ("/w/retrieve", "/w/retrieve", "/w/info"),
    ],
)
@pytest.mark.parametrize("described", [(200, b'{"retriever": "bm25"}'), (200, b"{"), (404, b"")])
def test_routes_of_an_address(recorded: Any, given: str, route: str, info: str, described: tuple[int, bytes]):
    server = recorded(("POST", route, 200, echo), ("GET", info, *described))
    remote = Remote(server.url.replace("://", "://user:secret@") + given)
    assert remote.search(["a"], 1)[0]
    assert remote.identity() == {"retriever": "remote", "url": server.url + given}
    assert [request.path for request in server.requests] == [route, info]


def test_a_password_is_not_shown():
    with pytest.raises(RetrievalError, match=r"^http://127\.0\.0\.1:9/retrieve failed"):
        Remote("http://user:secret@127.0.0.1:9", attempts=1).search(["a"], 1)


def test_other_forms_of_documents():
    bare = [{"id": "a", "contents": '"T"\nx'}, {"_id": "b", "title": "U", "text": "y"}]
    assert read_hits(bare) == [Hit(Passage("a", "T", "x"), 1.0), Hit(Passage("b", "U", "y"), 0.5)]
    # Search-R1's BM25 server sends no ids: an id is made from the contents.
    without = {"title": "T", "text": "x", "contents": '"T"\nx'}
    first, second = read_hits([{"document": without, "score": 3}, {"document": without | {"contents": "z"}}])
    assert (first.passage.title, first.passage.text, first.score) == ("T", "x", 3.0)
    assert first.passage.id == read_hits([without])[0].passage.id != second.passage.id
    assert read_hits([{"document": {"id": 7, "contents": "x"}, "score": 1}])[0].passage.id == "7"
    assert read_hits([{"id": "e", "title": "", "text": ""}])[0].passage == Passage("e", "", "")
    with pytest.raises(FieldError, match="lists"):
        read_hits({"document": {}})
