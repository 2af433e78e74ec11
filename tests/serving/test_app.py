"""Routes, limits and errors over HTTP: every error is one JSON line, and nothing keeps the server from the next."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from sleuth.errors import RetrievalError
from sleuth.types import Hit
from support.gated_retriever import Gated

OPEN = Gated(is_open=True)


def error_of(reply: httpx.Response) -> str:
    """The error of a response, which must be one line of JSON."""
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.text
    assert "Traceback" not in reply.text
    return str(reply.json()["error"])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"queries=radium&topk=3", 400, "not JSON"),
        (b'{"queries": "radium"}', 422, "$.queries"),
        (b'{"queries": ["a"], "topk": 0}', 422, ">= 1"),
        (json.dumps({"queries": ["a"] * 100_000}).encode(), 422, "10000"),
        (b'{"queries": ["' + b"a" * (17 << 20) + b'"]}', 413, "more than 16777216 bytes"),
    ],
)
def test_bad_requests(server: Any, body: bytes, status: int, words: str):
    reply = httpx.post(f"{server.url}/retrieve", content=body, timeout=60)
    assert reply.status_code == status
    assert words in error_of(reply)
    assert server.post({"queries": ["radium"]}).status_code == 200


def test_body_of_unknown_length_is_limited_while_it_arrives(server: Any):
    def chunks(number: int) -> Iterator[bytes]:
        yield b'{"query": "radium"'
        for _ in range(number):
            yield b" " * (1 << 20)
        yield b"}"

    for number, status in ((15, 200), (17, 413)):
        reply = httpx.post(f"{server.url}/retrieve", content=chunks(number), timeout=60)
        assert reply.status_code == status
    assert "more than 16777216 bytes" in error_of(reply)


@pytest.mark.parametrize(
    "path", ["/", "/retrieve/", "/retrieve/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/info/%00"]
)
def test_unknown_paths(server: Any, path: str):
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    connection.request("POST", path, b'{"queries": ["radium"]}')  # httpx would shorten the path
    reply = connection.getresponse()
    assert reply.status == 404
    routes = "/retrieve, /health, /info, /metrics"
    assert json.loads(reply.read()) == {"error": f"no such route; there are {routes}"}


def test_other_methods(server: Any):
    for method, path in (("GET", "/retrieve"), ("PUT", "/retrieve"), ("POST", "/health")):
        reply = httpx.request(method, server.url + path, timeout=60)
        assert reply.status_code == 405
        assert error_of(reply) == f"{method} is not allowed here"
        assert "allow" in reply.headers


def test_health_and_info(server: Any):
    assert server.get("/health").json() == {"status": "ready"}
    info = server.get("/info").json()
    assert info["server"] == "sleuth"
    assert info["retriever"]["retriever"] == "bm25"
    assert info["retriever"]["num_passages"] == "44"
    assert len(info["retriever"]["index"]) == 64
    assert info["limits"] == {"topk": 3, "max_topk": 1000, "max_queries": 10_000, "max_body_bytes": 16 << 20}


def test_metrics_count_requests_and_queries(start: Callable[..., Any]):
    server = start()
    for query in ("radium", "radium", "copper"):
        server.post({"queries": [query]})
    server.post({"queries": 3})
    server.get("/unheard-of")
    reply = server.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    assert "radium" not in reply.text
    requests = "request_seconds_count"
    assert server.metric(requests + '{path="/retrieve",status="200"}') == 3
    assert server.metric(requests + '{path="/retrieve",status="422"}') == 1
    assert server.metric(requests + '{path="other",status="404"}') == 1
    assert server.metric('request_seconds_bucket{le="+Inf",path="/retrieve",status="200"}') == 3
    assert [server.metric(f"{name}_total") for name in ("queries", "searched", "batches")] == [3, 2, 2]


@pytest.mark.parametrize("path", ["/retrieve", "/info", "/metrics"])
def test_token_is_required(serve_here: Callable[..., Any], path: str):
    server = serve_here(OPEN, token="s3cret")
    method, content = ("POST", b'{"query": "radium"}') if path == "/retrieve" else ("GET", None)
    wrong = (None, "s3cret", "Bearer", "Bearer s3cre", "Bearer s3cretx", "Basic s3cret", b"Bearer s3cr\xe9t")
    for given in wrong:
        headers = {} if given is None else {"Authorization": given}
        reply = httpx.request(method, server.url + path, content=content, headers=headers)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert "Bearer TOKEN" in error_of(reply)
    right = {"Authorization": "bearer s3cret"}
    assert httpx.request(method, server.url + path, content=content, headers=right).status_code == 200
    assert server.get("/health").status_code == 200


def test_full_queue_gets_503_and_loses_nothing(serve_here: Callable[..., Any]):
    retriever = Gated()
    server = serve_here(retriever, max_batch=1, max_waiting=2)
    before = server.metric("queries_total")
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(server.post, {"queries": ["q0"], "topk": 1})]
        server.wait_until("queries_total", before + 1)
        replies += [pool.submit(server.post, {"queries": [f"q{i}"], "topk": 1}) for i in (1, 2)]
        server.wait_until("waiting_queries", 2)
        for i in range(3):
            refused = server.post({"queries": [f"late {i}"]})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert error_of(refused) == "too busy: 2 queries are waiting; try again"
        retriever.gate.set()
        found = [reply.result().json()["result"][0][0]["text"] for reply in replies]
    assert found == ["q0", "q1", "q2"]
    assert server.post({"queries": ["late 0"]}).status_code == 200


def test_retrieval_error_is_503_and_a_crash_500(serve_here: Callable[..., Any]):
    class Failing(Gated):
        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            if "fail" in queries:
                raise RetrievalError("shard 3 does not answer")
            if "crash" in queries:
                raise ZeroDivisionError("secret detail")
            return super().search(queries, k)

    server = serve_here(Failing(is_open=True))
    failing = server.post({"queries": ["fail"]})
    assert (failing.status_code, error_of(failing)) == (503, "shard 3 does not answer")
    assert failing.headers["retry-after"] == "1"
    crash = server.post({"queries": ["crash"]})
    reason = "internal error; the traceback is in the server's log"
    assert (crash.status_code, error_of(crash)) == (500, reason)
    assert server.post({"queries": ["fine"]}).status_code == 200


def test_deadline_covers_slow_searches(serve_here: Callable[..., Any]):
    retriever = Gated()
    late = serve_here(retriever, timeout_s=0.3).post({"queries": ["q"]})
    assert (late.status_code, error_of(late)) == (503, "not answered within 0.3 s; try again")
    assert late.headers["retry-after"] == "1"
    retriever.gate.set()


def test_deadline_covers_bodies_that_never_arrive(serve_here: Callable[..., Any]):
    address = urlsplit(serve_here(OPEN, timeout_s=0.3).url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(b"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        reply = b""
        while chunk := connection.recv(4096):  # until the server closes the connection
            reply += chunk
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b"not answered within 0.3 s" in reply


def test_client_that_disconnects_does_not_affect_others(serve_here: Callable[..., Any]):
    retriever = Gated()
    server = serve_here(retriever, max_batch=1)
    before = server.metric("queries_total")
    with ThreadPoolExecutor(2) as pool:
        pool.submit(server.post, {"queries": ["before"]})
        server.wait_until("queries_total", before + 1)
        staying = pool.submit(server.post, {"queries": ["same"]})
        server.wait_until("waiting_queries", 1)
        with pytest.raises(httpx.ReadTimeout):
            server.post({"queries": ["same"]}, timeout=httpx.Timeout(60, read=0.3))
        retriever.gate.set()
        assert staying.result().json()["result"][0][0]["text"] == "same"
