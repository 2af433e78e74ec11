"""The remote retriever against our own server, and against servers that fail in every way they can."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import ConfigError, RetrievalError
from sleuth.fields import FieldError
from sleuth.recipes import load_recipe
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.servers.opensearch import OpenSearch
from sleuth.retrievers.servers.qdrant import Qdrant
from sleuth.retrievers.servers.remote import Remote, read_hits
from sleuth.types import Hit, Passage

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class Endpoint:
    """A server whose answer to its n-th request (from 0) is a function of n and the body."""

    def __init__(self, answer: Callable[[int, dict[str, Any]], Answer]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.info = b""
        """The answer to every GET; b"" = 404."""
        self.pace_s = 0.0
        """Seconds after each byte of an answer."""
        lock, endpoint = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    number = len(endpoint.bodies)
                    endpoint.bodies.append(body)
                    endpoint.headers.append(dict(self.headers))
                    endpoint.paths.append(self.path)
                status, payload, *rest = answer(number, body)
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(data))} | (rest[0] if rest else {})).items():
                    self.send_header(name, value)
                self.end_headers()
                pieces = [data[i : i + 1] for i in range(len(data))] if endpoint.pace_s else [data]
                with suppress(ConnectionError):  # the client did not wait
                    for piece in pieces:
                        self.wfile.write(piece)
                        time.sleep(endpoint.pace_s)

            def do_GET(self) -> None:
                endpoint.paths.append(self.path)
                self.send_response(200 if endpoint.info else 404)
                self.send_header("Content-Length", str(len(endpoint.info)))
                self.end_headers()
                self.wfile.write(endpoint.info)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Endpoint]:
    endpoint = Endpoint(answer)
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


def echo(_: int, body: dict[str, Any]) -> Answer:
    """Every query finds itself."""
    found = [[{"document": {"id": q, "contents": f'"{q}"\ntext'}, "score": 2.0}] for q in body["queries"]]
    return 200, {"result": found}


def impatient(url: str, **settings: Any) -> Remote:
    """A remote retriever whose pauses are noted, not waited for."""
    remote = Remote(url, **settings)
    pauses: list[float] = []
    remote._caller._sleep = pauses.append
    object.__setattr__(remote, "pauses", pauses)
    return remote


def rest_is_over(remote: Remote) -> None:
    """Put the breaker's clock forward by more than its rest."""
    remote._caller._breaker._clock = lambda: time.monotonic() + 61


PASSAGES = [
    Passage("curie", "Marie Curie", "She discovered radium. "),
    Passage("b", '"Heroes" (album)', "\nRecorded in Berlin."),
    Passage("c", "", "Copper of Chile\nand radium"),
    Passage("d", " two\nlines ", "gold"),
]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[tuple[Remote, BM25]]:
    """Our own server's process on an index, and the index itself."""
    import subprocess
    import sys

    build_index(PASSAGES, tmp_path / "i")
    command = [sys.executable, "-m", "sleuth", "serve-retriever", str(tmp_path / "i"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    assert process.stdout.readline() == "ready: 4 passages\n"
    yield Remote(url), BM25.open(tmp_path / "i")
    process.terminate()
    assert process.wait(timeout=40) == 0


def test_our_own_server_gives_what_the_index_gives(ours: tuple[Remote, BM25]):
    remote, local = ours
    queries = ["radium", "", "berlin album", "AND (", "Curie \ud800", "gold", "radium"]
    for k in (1, 3, 1000):
        assert remote.search(queries, k) == local.search(queries, k)
    assert Remote(remote.url, batch=2).search(queries, 2) == local.search(queries, 2)
    told = remote.identity()
    assert (told["retriever"], told["url"]) == ("remote", remote.url)
    assert {key.removeprefix("of."): value for key, value in told.items() if key.startswith("of.")} == (
        local.identity()
    )
    with pytest.raises(RetrievalError, match=r"refused the request: status 422: topk must be .* not 1001"):
        remote.search(["radium"], 1001)


def test_what_is_sent():
    with serving(echo) as endpoint:
        remote = Remote(endpoint.url, batch=2, concurrency=1)
        found = remote.search(["a", "b", "a", " ", "c"], 3)
        assert [[hit.passage for hit in hits] for hits in found] == [
            [Passage("a", "a", "text")],
            [Passage("b", "b", "text")],
            [Passage("a", "a", "text")],
            [],
            [Passage("c", "c", "text")],
        ]
        assert endpoint.bodies == [
            {"queries": ["a", "b"], "topk": 3, "return_scores": True},
            {"queries": ["c"], "topk": 3, "return_scores": True},
        ]
        assert set(endpoint.paths) == {"/retrieve"}
        assert "Authorization" not in endpoint.headers[0]
        assert remote.search([], 3) == remote.search([""], 3)[:0] == []
        assert remote.search(["a", "c"], 3) == [found[0], found[4]]
        assert len(endpoint.bodies) == 2  # all remembered, or nothing to ask
        found[0].clear()
        assert len(remote.search(["a"], 3)[0]) == 1  # a caller's list is its own
        assert remote.search(["a"], 2)
        assert len(endpoint.bodies) == 3
        Remote(endpoint.url, cache_bytes=0).search(["a"], 2)
        assert len(endpoint.bodies) == 4


def test_the_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    with serving(echo) as endpoint:
        Remote(endpoint.url + "/v2/retrieve", token_env="MY_TOKEN").search(["a"], 1)
        assert endpoint.headers[0]["Authorization"] == "Bearer s3cret"
        assert endpoint.paths == ["/v2/retrieve"]


@pytest.mark.parametrize("status", [408, 425, 500, 502, 504])
def test_a_failing_server_is_asked_again(status: int):
    with serving(lambda n, body: (status, b"<html>oops</html>") if n < 2 else echo(n, body)) as endpoint:
        remote = impatient(endpoint.url)
        assert remote.search(["a"], 1)[0][0].passage.id == "a"
        assert len(endpoint.bodies) == 3
        assert 0.375 <= remote.pauses[0] <= 0.625
        assert 0.75 <= remote.pauses[1] <= 1.25


def test_a_busy_server_is_waited_for_as_long_as_it_asks_and_not_counted_as_broken():
    busy = (503, {"error": "too busy"}, {"Retry-After": "4"})
    with serving(lambda n, body: busy if n < 4 else echo(n, body)) as endpoint:
        remote = impatient(endpoint.url, breaker_failures=2)
        assert remote.search(["a"], 1)[0]
        assert remote.pauses[:3] == [4.0, 4.0, 4.0]
    with serving(lambda n, body: busy) as endpoint:
        with pytest.raises(
            RetrievalError, match=r"^http://127.* failed: status 503: too busy \(tried 3 times\)$"
        ):
            impatient(endpoint.url, attempts=3).search(["a"], 1)
        assert len(endpoint.bodies) == 3


@pytest.mark.parametrize(
    ("status", "payload", "words"),
    [
        (422, {"error": "topk is too large"}, "status 422: topk is too large"),
        (422, {"detail": [{"msg": "field required"}]}, "field required"),
        (401, {"error": "a token is needed"}, "a token is needed"),
        (404, b"", "status 404: Not Found"),
        (302, b"", "status 302: Found"),
    ],
)
def test_a_refusal_is_final(status: int, payload: Any, words: str):
    with serving(lambda n, body: (status, payload)) as endpoint:
        remote = impatient(endpoint.url)
        with pytest.raises(RetrievalError, match="refused the request") as caught:
            remote.search(["a"], 1)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    "payload",
    [
        {"result": []},
        {"result": [[], []]},
        {"result": None},
        {"results": [[]]},
        [[]],
        "oops",
        {"result": [None]},
        {"result": [{"document": {"id": "a", "contents": "x"}}]},
        {"result": [["text"]]},
        {"result": [[{"document": "text", "score": 1}]]},
        {"result": [[{"document": {"id": "a"}, "score": 1}]]},
        {"result": [[{"document": {"id": ["a"], "contents": "x"}, "score": 1}]]},
        {"result": [[{"document": {"id": "a", "contents": "x"}, "score": "high"}]]},
        {"result": [[{"document": {"id": "a", "contents": "x"}, "score": True}]]},
    ],
)
def test_answers_that_are_no_answers(payload: Any):
    with serving(lambda n, body: (200, payload)) as endpoint:
        with pytest.raises(
            RetrievalError, match=r"^http://127\.0\.0\.1:\d+/retrieve answered with"
        ) as caught:
            impatient(endpoint.url).search(["a"], 1)
        assert len(str(caught.value)) < 250


def test_garbage_and_cut_answers_are_asked_for_again():
    cut = (200, b'{"result": [', {"Content-Length": "500", "Connection": "close"})
    answers = [(200, b"not json"), cut, (200, {"result": [[]]})]
    with serving(lambda n, body: answers[n]) as endpoint:
        assert impatient(endpoint.url).search(["a"], 1) == [[]]
    with serving(lambda n, body: (200, b"not json")) as endpoint:
        with pytest.raises(RetrievalError, match="the answer cannot be read"):
            impatient(endpoint.url, attempts=2).search(["a"], 1)


def test_a_server_that_is_not_there():
    with serving(echo) as endpoint:
        url = endpoint.url
    with pytest.raises(RetrievalError, match=r"failed: ConnectError.*\(tried 2 times\)"):
        impatient(url, attempts=2).search(["a"], 1)
    with pytest.raises(RetrievalError, match="ConnectError"):
        Remote(url).identity()


def test_silence_ends_after_the_time_allowed():
    over = threading.Event()

    def silent(n: int, body: dict[str, Any]) -> Answer:
        over.wait(60)
        return echo(n, body)

    with serving(silent) as endpoint:
        with pytest.raises(RetrievalError, match=r"no answer in time \(ReadTimeout\) \(tried 2 times\)"):
            impatient(endpoint.url, timeout_s=0.2, attempts=2).search(["a"], 1)
        over.set()


def test_hedging_takes_whichever_answer_comes_first():
    over = threading.Event()

    def silent_first(n: int, body: dict[str, Any]) -> Answer:
        if n == 0:
            over.wait(60)
        return echo(n, body)

    with serving(silent_first) as endpoint:
        assert Remote(endpoint.url, hedge_s=0.1).search(["a"], 1)[0][0].passage.id == "a"
        assert not over.is_set()  # the first request is still unanswered
        over.set()
        assert len(endpoint.bodies) == 2
        assert endpoint.bodies[0] == endpoint.bodies[1]
        Remote(endpoint.url, hedge_s=60).search(["quick"], 1)
        assert len(endpoint.bodies) == 3  # none is sent twice without need


def test_hedging_a_first_answer_that_fails_waits_for_the_other():
    def odd(n: int, body: dict[str, Any]) -> Answer:
        time.sleep(0.4 if n == 0 else 0.1)
        return echo(n, body) if n == 0 else (500, b"")

    with serving(odd) as endpoint:
        assert Remote(endpoint.url, hedge_s=0.05).search(["a"], 1)[0][0].passage.id == "a"
        assert len(endpoint.bodies) == 2


def test_a_broken_server_is_left_alone_and_then_tried_by_one():
    broken = [True]
    with serving(lambda n, body: (500, b"") if broken[0] else echo(n, body)) as endpoint:
        remote = impatient(endpoint.url, attempts=2, breaker_failures=3, breaker_rest_s=60)
        with pytest.raises(RetrievalError, match=r"status 500.*tried 2 times"):
            remote.search(["a"], 1)
        with pytest.raises(RetrievalError, match=r"3 times or more in a row \(status 500.*left alone"):
            remote.search(["a"], 1)
        assert len(endpoint.bodies) == 3
        with pytest.raises(RetrievalError, match="left alone for another"):
            remote.search(["a"], 1)
        assert len(endpoint.bodies) == 3
        rest_is_over(remote)
        broken[0] = False
        assert remote.search(["a"], 1)[0]
        assert remote.search(["b"], 1)[0]


def test_a_trial_that_is_refused_or_put_off_ends_the_rest():
    for alive in ((422, {"error": "no"}), (503, {"error": "busy"}, {"Retry-After": "1"})):
        answers = [(500, b""), alive]
        with serving(lambda n, body, answers=answers: answers[n] if n < 2 else echo(n, body)) as endpoint:
            remote = impatient(endpoint.url, attempts=1, breaker_failures=1, breaker_rest_s=60)
            for words in ("status 500", "left alone"):
                with pytest.raises(RetrievalError, match=words):
                    remote.search(["a"], 1)
            rest_is_over(remote)
            with pytest.raises(RetrievalError, match=f"status {alive[0]}"):
                remote.search(["a"], 1)
            assert remote.search(["a"], 1)[0]


@pytest.mark.parametrize("num_threads", [1, 16])
def test_requests_under_way_outlast_a_short_failure_together(num_threads: int):
    end = time.monotonic() + 0.4
    with serving(lambda n, body: (502, b"") if time.monotonic() < end else echo(n, body)) as endpoint:
        remote = Remote(endpoint.url, batch=1, breaker_failures=2, breaker_rest_s=0.5)
        found = remote.search([f"q{i}" for i in range(num_threads)], 1)
        assert [hits[0].passage.id for hits in found] == [f"q{i}" for i in range(num_threads)]


def test_a_rest_is_an_attempt_and_the_last_one_is_refused_at_once():
    with serving(lambda n, body: (500, b"")) as endpoint:
        remote = impatient(endpoint.url, attempts=4, breaker_failures=2, breaker_rest_s=9)
        with pytest.raises(RetrievalError, match="left alone"):
            remote.search(["a"], 1)
        assert len(endpoint.bodies) == 2
        rest = remote.pauses[2:]  # after the pauses of two failures
        assert sum(rest) == pytest.approx(9 + 2, abs=0.5)  # and the time of a trial
        assert max(rest) == 0.5  # looking again and again
        at_once = replace(remote, attempts=1, breaker_failures=1)
        for words in ("tried 1 times", "left alone"):
            with pytest.raises(RetrievalError, match=words):
                at_once.search(["a"], 1)


def test_an_answer_that_drips_is_late():
    def drip(_: int, body: dict[str, Any]) -> Answer:
        return 200, b" " * 40 + json.dumps(echo(0, body)[1]).encode()

    with serving(drip) as endpoint:
        endpoint.pace_s = 0.05
        start = time.monotonic()
        with pytest.raises(RetrievalError, match="too slowly"):
            Remote(endpoint.url, timeout_s=0.5, attempts=1).search(["a"], 1)
        assert time.monotonic() - start < 3
        assert Remote(endpoint.url, timeout_s=30, attempts=1).search(["a"], 1)[0]


@pytest.mark.parametrize("secret", ["t0psecr\net", "t0psecr\u00e9t", "t0p\x7fsecr"])
@pytest.mark.parametrize(
    "kind", [Remote, partial(OpenSearch, collection="c"), partial(Qdrant, collection="c")]
)
def test_a_secret_that_cannot_be_sent_is_not_shown(monkeypatch: pytest.MonkeyPatch, secret: str, kind: Any):
    monkeypatch.setenv("SLEUTH_RETRIEVER_TOKEN", secret)
    with pytest.raises(ConfigError, match=r"\$SLEUTH_RETRIEVER_TOKEN") as caught:
        kind(url="http://127.0.0.1:9").search(["a"], 1)
    assert "t0p" not in str(caught.value)


def test_a_line_end_after_the_token_is_not_part_of_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLEUTH_RETRIEVER_TOKEN", "s3cret\n")
    with serving(echo) as endpoint:
        Remote(endpoint.url).search(["a"], 1)
        assert endpoint.headers[0]["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("", ["/retrieve", "/info"]),
        ("/", ["/retrieve", "/info"]),
        ("?a=b", ["/retrieve?a=b", "/info"]),
        ("/wiki/retrieve", ["/wiki/retrieve", "/wiki/info"]),
    ],
)
def test_what_is_asked_of_an_address(given: str, asked: list[str]):
    with serving(echo) as endpoint:
        remote = Remote(endpoint.url + given)
        remote.search(["a"], 1)
        assert remote.identity() == {"retriever": "remote", "url": endpoint.url + given}
        assert endpoint.paths == asked


@pytest.mark.parametrize("told", [b'{"retriever": "bm25"}', b"[]", b"{"])
def test_an_identity_that_is_none(told: bytes):
    with serving(echo) as endpoint:
        endpoint.info = told
        assert Remote(endpoint.url).identity() == {"retriever": "remote", "url": endpoint.url}


def test_a_score_beyond_all_numbers():
    huge = b'{"result": [[{"document": {"id": "a", "contents": "x"}, "score": 1%s}]]}' % (b"0" * 400)
    with (
        serving(lambda n, body: (200, huge)) as endpoint,
        pytest.raises(RetrievalError, match="score: must be a number"),
    ):
        Remote(endpoint.url).search(["a"], 1)


def test_503_without_retry_after_is_a_failure():
    with serving(lambda n, body: (503, b"upstream is gone")) as endpoint:
        with pytest.raises(RetrievalError, match="left alone"):
            impatient(endpoint.url, breaker_failures=2).search(["a"], 1)
        assert len(endpoint.bodies) == 2


def test_other_forms_of_documents():
    bare = [{"id": "a", "contents": '"T"\nx'}, {"_id": "b", "title": "U", "text": "y"}]
    assert read_hits(bare) == [Hit(Passage("a", "T", "x"), 1.0), Hit(Passage("b", "U", "y"), 0.5)]
    # Search-R1's BM25 server sends no ids: the same contents have the same one, others another.
    without = {"title": "T", "text": "x", "contents": '"T"\nx'}
    (first, second) = read_hits(
        [{"document": without, "score": 3}, {"document": without | {"contents": "z"}}]
    )
    assert (first.passage.title, first.passage.text, first.score) == ("T", "x", 3.0)
    assert first.passage.id == read_hits([without])[0].passage.id != second.passage.id
    assert read_hits([{"document": {"id": 7, "contents": "x"}, "score": 1}])[0].passage.id == "7"
    assert read_hits([{"id": "e", "title": "", "text": ""}])[0].passage == Passage("e", "", "")
    with pytest.raises(FieldError, match="lists"):
        read_hits({"document": {}})


@pytest.mark.parametrize("url", ["host:8000", "ftp://host", "http://", "/some/index"])
def test_addresses_that_are_none(url: str):
    with pytest.raises(ConfigError, match="starts with http"):
        Remote(url).search(["a"], 1)


@pytest.mark.parametrize(
    "url", ["http://h:80a", "http://[::1", "http://a..b", "http://h:99999", "http://h/a\nb"]
)
@pytest.mark.parametrize(
    "kind", [Remote, partial(OpenSearch, collection="c"), partial(Qdrant, collection="c")]
)
def test_addresses_that_cannot_be_asked(url: str, kind: Any):
    with pytest.raises(ConfigError, match="is not a server's address"):
        kind(url=url).search(["a"], 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"batch": 0},
        {"cache_bytes": -1},
        {"attempts": 0},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"hedge_s": -1},
        {"breaker_failures": 0},
        {"breaker_rest_s": -1},
        {"concurrency": 0},
    ],
)
def test_settings_that_cannot_be(settings: dict[str, float]):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Remote("http://host", **settings)


def test_it_is_placed_copied_and_saved_like_any_other():
    empty = Remote()
    assert empty.unplaced
    with pytest.raises(RetrievalError, match="no server given"):
        empty.search(["a"], 1)
    with serving(echo) as endpoint:
        placed = empty.at(endpoint.url)
        assert not placed.unplaced
        assert placed.search(["a"], 1)
        assert pickle.loads(pickle.dumps(placed)) == replace(placed) == placed
        assert pickle.loads(pickle.dumps(placed)).search(["a"], 1) == placed.search(["a"], 1)
    recipe = load_recipe("search-r1").with_settings(
        ["retriever=remote", "retriever.url=http://u:p@h:1", "retriever.hedge_s=0.5"]
    )
    assert recipe.retriever == Remote("http://u:p@h:1", hedge_s=0.5)
    assert type(recipe).from_dict(recipe.to_dict()) == recipe


def test_a_password_is_not_shown():
    with serving(echo) as endpoint:
        remote = Remote(endpoint.url.replace("://", "://user:secret@"))
        assert remote.identity() == {"retriever": "remote", "url": endpoint.url}
    with pytest.raises(RetrievalError, match=r"^http://127\.0\.0\.1:9/retrieve failed"):
        impatient("http://user:secret@127.0.0.1:9", attempts=1).search(["a"], 1)


def test_wrong_queries():
    remote = Remote("http://127.0.0.1:9")
    for queries, k, words in (
        ("text", 1, "list of texts"),
        ([3], 1, "must be text"),
        (["a"], 0, "at least 1"),
    ):
        with pytest.raises(RetrievalError, match=words):
            remote.search(queries, k)  # type: ignore[arg-type]
