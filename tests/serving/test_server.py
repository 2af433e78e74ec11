"""The process: bad input over HTTP, readiness, token, overload, metrics, and an orderly end."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.rerank import Rerank
from support.cross_encoder import save_cross_encoder

HELD = """
limits = Limits(max_batch=1, max_searches=1, max_waiting=2)
class Held(Retriever):
    def search(self, queries, k):
        if queries != ["first search"]:
            pass_gate()
        return [[Hit(Passage("p", "", query), 1.0)] for query in queries]
open_retriever = Held
"""


def one_line(reply: httpx.Response) -> str:
    """The error of a reply, which must be one line of JSON and no more."""
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.text
    assert "Traceback" not in reply.text
    return str(reply.json()["error"])


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "no JSON"),
        (b"not json", 400, "no JSON"),
        (b"queries=radium&topk=3", 400, "no JSON"),
        (b'{"queries": ["\xff"]}', 400, "not UTF-8"),
        (b'{"queries": "radium"}', 422, "list of texts"),
        (b'{"query": ""}', 422, "query: empty"),
        (b'{"queries": ["a"], "topk": 0}', 422, "not 0"),
        (b'{"queries": ["a"], "topk": -1}', 422, "not -1"),
        (b'{"queries": ["a"], "topk": 1000000000}', 422, "not 1000000000"),
        (b'{"queries": ["a"], "topk": true}', 422, "not True"),
        (b'{"queries": ["a"], "topk": "3"}', 422, "not '3'"),
        (json.dumps({"queries": ["a"] * 100_000}).encode(), 413, "100000 queries"),
        (b'{"queries": ["' + b"a" * (17 << 20) + b'"]}', 413, "at most 16777216 are taken"),
    ],
)
def test_bad_requests(server: Any, body: bytes, status: int, words: str):
    reply = httpx.post(f"{server.url}/retrieve", content=body, timeout=60)
    assert reply.status_code == status
    assert words in one_line(reply)
    assert server.post({"queries": ["radium"]}).status_code == 200  # and it goes on


def test_a_huge_body_of_unknown_length(server: Any):
    def chunks() -> Any:
        for _ in range(17):
            yield b"a" * (1 << 20)

    reply = httpx.post(f"{server.url}/retrieve", content=chunks(), timeout=60)
    assert reply.status_code == 413
    assert "longer than 16777216 bytes" in one_line(reply)


def test_a_compressed_body(server: Any):
    reply = httpx.post(
        f"{server.url}/retrieve", content=b"x", headers={"Content-Encoding": "gzip"}, timeout=60
    )
    assert reply.status_code == 415
    assert "compressed" in one_line(reply)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/retrieve/",
        "/retrieve/../../etc/passwd",
        "/retrieve/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/static/../../etc/passwd",
        "/info/%00",
    ],
)
def test_paths_that_lead_nowhere(server: Any, path: str):
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    connection.request("POST", path, b'{"queries": ["radium"]}')  # as it is: httpx would shorten it
    reply = connection.getresponse()
    assert reply.status == 404
    assert json.loads(reply.read()) == {
        "error": "no such route; there are /retrieve, /health, /info, /metrics"
    }


def test_other_methods(server: Any):
    for method, path in (("GET", "/retrieve"), ("PUT", "/retrieve"), ("POST", "/health")):
        reply = httpx.request(method, server.url + path, timeout=60)
        assert reply.status_code == 405
        assert one_line(reply) == f"{method} is not answered here"
        assert "allow" in reply.headers


def test_health_and_info(server: Any):
    health = server.get("/health")
    assert (health.status_code, health.json()) == (200, {"status": "ready"})
    info = server.get("/info").json()
    assert info["server"] == "sleuth"
    assert info["retriever"]["retriever"] == "bm25"
    assert info["retriever"]["num_passages"] == "44"
    assert len(info["retriever"]["index"]) == 64
    assert info["limits"] == {"topk": 3, "max_topk": 1000, "max_queries": 10_000, "max_body_bytes": 16 << 20}


def test_metrics(start: Callable[..., Any]):
    server = start()
    for query in ("radium", "radium", "copper"):
        server.post({"queries": [query]})
    server.post({"queries": 3})
    server.get("/unheard-of")
    reply = server.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.rsplit(" ", 1) for line in reply.text.splitlines() if not line.startswith("#"))
    assert values['sleuth_requests_total{path="/retrieve",status="200"}'] == "3"
    assert values['sleuth_requests_total{path="/retrieve",status="422"}'] == "1"
    assert values['sleuth_requests_total{path="other",status="404"}'] == "1"
    assert [values[f"sleuth_{name}_total"] for name in ("queries", "cache_hits", "searched", "batches")] == [
        "3",
        "1",
        "2",
        "2",
    ]
    assert (
        values['sleuth_retrieve_seconds_bucket{le="+Inf"}'] == values["sleuth_retrieve_seconds_count"] == "3"
    )
    assert values["sleuth_ready"] == "1"
    assert "radium" not in reply.text


def test_a_token_is_asked_for_everywhere_but_at_the_door(start: Callable[..., Any]):
    for server in (start("--token", "s3cret"), start(environment={"SLEUTH_RETRIEVER_TOKEN": "s3cret"})):
        for headers in (
            {},
            {"Authorization": "s3cret"},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer s3cre"},
            {"Authorization": "Bearer s3cretx"},
            {"Authorization": "Basic s3cret"},
            {"Authorization": b"Bearer s3cr\xe9t"},
        ):
            reply = server.post({"queries": ["radium"]}, headers=headers)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == "Bearer"
            assert "Bearer TOKEN" in one_line(reply)
        right = {"Authorization": "bearer s3cret"}
        assert server.post({"queries": ["radium"]}, headers=right).status_code == 200
        assert server.get("/health").status_code == 200
        for path in ("/info", "/metrics"):
            assert server.get(path).status_code == 401
            assert server.get(path, headers=right).status_code == 200


def test_not_ready_while_the_index_is_being_opened(start_odd: Callable[..., Any]):
    server = start_odd(HELD + "def open_retriever():\n    pass_gate()\n    return Held()\n", ready=False)
    health = server.get("/health")
    assert (health.status_code, health.json()) == (503, {"status": "opening"})
    early = server.post({"queries": ["radium"]})
    assert early.status_code == 503
    assert early.headers["retry-after"] == "1"
    assert "being opened" in one_line(early)
    assert server.get("/info").json()["ready"] is False
    server.open_gate()
    server.wait_ready()
    assert server.post({"queries": ["radium"]}).status_code == 200


def test_overload_is_503_with_retry_after_and_nothing_is_lost(start_odd: Callable[..., Any]):
    server = start_odd(HELD)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(server.post, {"queries": ["q0"]})
        waiting = [pool.submit(server.post, {"queries": [f"q{i}"]}) for i in (1, 2)]
        server.wait_until("waiting_queries", 2)
        for i in range(5):
            refused = server.post({"queries": [f"late {i}"]})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert one_line(refused) == "too busy: 2 queries are waiting; try again"
        server.wait_until("queries_total", 3)  # those of the requests that were accepted
        server.open_gate()
        found = [reply.result().json()["result"][0][0]["text"] for reply in (first, *waiting)]
    assert found == ["q0", "q1", "q2"]
    assert server.post({"queries": ["late 0"]}).status_code == 200


def test_a_failing_retriever_is_503_and_a_broken_one_500(start_odd: Callable[..., Any]):
    server = start_odd("""
limits = Limits()
class Failing(Retriever):
    def search(self, queries, k):
        if "fail" in queries:
            raise RetrievalError("shard 3 does not answer")
        if "break" in queries:
            raise ZeroDivisionError("secret detail")
        return [[] for _ in queries][: 0 if "short" in queries else None]
open_retriever = Failing
""")
    failing = server.post({"queries": ["fail"]})
    assert (failing.status_code, one_line(failing)) == (503, "shard 3 does not answer")
    assert failing.headers["retry-after"] == "1"
    short = server.post({"queries": ["short"]})
    assert (short.status_code, one_line(short)) == (503, "the retriever gave 0 lists for 1 queries")
    broken = server.post({"queries": ["break"]})
    assert broken.status_code == 500
    assert "secret" not in one_line(broken)
    assert server.post({"queries": ["fine"]}).json() == {"result": [[]]}


def test_requests_under_way_are_answered_before_the_end(start_odd: Callable[..., Any]):
    server = start_odd(HELD)
    with ThreadPoolExecutor(3) as pool:
        replies = [pool.submit(server.post, {"queries": [f"q{i}"]}) for i in range(3)]
        server.wait_until("waiting_queries", 2)
        server.process.terminate()
        for _ in range(600):  # until nobody is let in any more
            try:
                socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port)).close()
            except ConnectionError:
                break
            time.sleep(0.05)
        assert not any(reply.done() for reply in replies)
        server.open_gate()
        assert sorted(r.result().json()["result"][0][0]["text"] for r in replies) == ["q0", "q1", "q2"]
    assert server.stop() == 0


@pytest.mark.parametrize("held", ["search", "opening"])
def test_the_end_does_not_wait_for_a_search_longer_than_it_says(start_odd: Callable[..., Any], held: str):
    brief = "import sleuth.serving.server as s\ns.GRACE_S, s._LAST_WORDS_S = 0.5, 0.5\n"
    if held == "opening":
        server = start_odd(HELD + "def open_retriever():\n    pass_gate()\n" + brief, ready=False)
    else:
        server = start_odd(HELD + brief)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(server.post, {"queries": ["q"]})
        if held == "search":
            time.sleep(0.5)
        else:
            assert reply.result().status_code == 503
        start = time.monotonic()
        server.process.terminate()
        assert server.process.wait(timeout=20) == 0
        assert time.monotonic() - start < 10
        if held == "search":
            assert (reply.result().status_code, one_line(reply.result())) == (
                503,
                "the server ended before an answer was found",
            )


def test_a_signal_at_any_time_of_the_start_ends_it(start_odd: Callable[..., Any]):
    for tenths in range(8):
        server = start_odd(HELD, ready=False)
        time.sleep(tenths / 10)
        server.process.terminate()
        assert server.process.wait(timeout=20) in (0, -signal.SIGTERM)


def test_more_connections_than_files_may_be_open_do_not_fill_the_log(start_odd: Callable[..., Any]):
    few = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
    server = start_odd(few + HELD)
    address = (urlsplit(server.url).hostname, urlsplit(server.url).port)
    connections = [socket.create_connection(address) for _ in range(100)]
    time.sleep(3)
    for connection in connections:
        connection.close()
    server.wait_ready()
    server.open_gate()
    assert server.stop() == 0
    assert len(server.process.stderr.read()) < 20_000


def test_a_closed_standard_output_does_not_end_it(index: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = f"{sys.executable} -m sleuth serve-retriever {index} --port {port} | head -1"
    process = subprocess.Popen(command, shell=True, stderr=subprocess.PIPE, start_new_session=True, text=True)
    try:
        for _ in range(200):
            time.sleep(0.05)
            with suppress(httpx.HTTPError):
                if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                    break
        else:
            raise AssertionError("not ready within 10 s")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=40)[1] == ""


def test_a_body_that_never_comes_is_given_up(start_odd: Callable[..., Any]):
    server = start_odd(HELD + "limits = Limits(body_timeout_s=0.5)\n")
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(b"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        reply = b""
        while chunk := connection.recv(4096):  # the server ends the connection, too
            reply += chunk
    assert reply.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within 0.5 s" in reply


def test_a_client_that_leaves_takes_nobody_along(start_odd: Callable[..., Any]):
    server = start_odd(HELD)
    with ThreadPoolExecutor(2) as pool:
        pool.submit(server.post, {"queries": ["before"]})
        staying = pool.submit(server.post, {"queries": ["same"]})
        server.wait_until("waiting_queries", 1)
        with pytest.raises(httpx.ReadTimeout):
            server.post({"queries": ["same"]}, timeout=httpx.Timeout(60, read=0.3))
        server.open_gate()
        assert staying.result().json()["result"][0][0]["text"] == "same"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sleuth", "serve-retriever", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_starting_what_cannot_be_served(index: Path, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            ([str(tmp_path / "none"), "--port", "0"], "does not exist"),
            ([str(tmp_path), "--port", "0"], "is not an index"),
            ([f"{index}/../../{index.name}x", "--port", "0"], "does not exist"),
            ([str(index), "--port", "0", "--retriever", "dense"], "holds no vectors"),
            ([str(index), "--port", "0", "--retriever", "bm52"], "did you mean 'bm25'"),
            ([str(index), "--port", port], "cannot listen on '127.0.0.1' port"),
            ([str(index), "--port", "70000"], "cannot listen"),
            ([str(index), "--port", "0", "--max-batch", "0"], "max_batch must be at least 1"),
            ([str(index), "--port", "0", "--token", ""], "--token is empty"),
        ):
            done = run(*arguments)
            assert done.returncode == 1, arguments
            assert words in done.stderr
            assert done.stderr.count("\n") == 1
            assert done.stderr.startswith("sleuth: ")


def test_what_was_found_is_put_in_order_by_a_cross_encoder(
    start: Callable[..., Any], index: Path, tmp_path: Path
):
    model = str(save_cross_encoder(tmp_path, num_labels=1))
    reply = start("--rerank", model).post({"queries": ["a houses"], "topk": 9, "return_scores": True})
    served = [(hit["document"]["id"], hit["score"]) for hit in reply.json()["result"][0]]
    here = Rerank(BM25.open(index), CrossEncoder(model)).search(["a houses"], 9)[0]
    assert {name for name, _ in served} == {hit.passage.id for hit in here}
    assert [score for _, score in served] == pytest.approx([hit.score for hit in here], abs=1e-5)
    assert len(served) == 9
    done = run(str(index), "--port", "0", "--rerank", str(tmp_path / "none"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


async def ask_one(address: Any, query: str, line: str) -> tuple[int, str]:
    """Status, and the id found or the error, of one query on a connection of its own."""
    body = json.dumps({"queries": [query], "topk": 1, "return_scores": True}).encode()
    head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\n{line}Content-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(head.encode() + body)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(re.search(r"content-length: (\d+)", answer)[1])  # type: ignore[index]
    content = json.loads(await reader.readexactly(length))
    writer.close()
    status = int(answer.split()[1])
    if status == 503:
        assert "retry-after: 1" in answer
    return status, content["result"][0][0]["document"]["id"] if status == 200 else content["error"]


async def ask_thousand(server: Any, line: str) -> list[tuple[int, str]]:
    address = urlsplit(server.url)
    asking = (ask_one(address, f"town {i % 40} houses {i}", line) for i in range(1000))
    return await asyncio.wait_for(asyncio.gather(*asking), 120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "workers"),
    [("", "1"), ("Connection: close\r\n", "1"), ("", "3")],
    ids=["front", "application", "workers"],
)
def test_a_thousand_single_queries_at_once(start: Callable[..., Any], line: str, workers: str):
    replies = asyncio.run(ask_thousand(start("--cache-bytes", "0", "--workers", workers), line))
    assert len(replies) == 1000
    assert {status for status, _ in replies} <= {200, 503}
    assert sum(status == 200 for status, _ in replies) >= 900
    assert all(found == f"town-{i % 40}" for i, (status, found) in enumerate(replies) if status == 200)


@pytest.mark.slow
def test_a_thousand_at_once_are_too_many_for_a_slow_retriever_but_none_is_lost(start_odd: Callable[..., Any]):
    server = start_odd("""
limits = Limits(max_batch=8, max_waiting=50)
class Slow(Retriever):
    def search(self, queries, k):
        time.sleep(0.02)
        return [[Hit(Passage("-".join(query.split()[:2]), "", query), 1.0)] for query in queries]
open_retriever = Slow
""")
    replies = asyncio.run(ask_thousand(server, ""))
    assert {status for status, _ in replies} == {200, 503}
    for i, (status, told) in enumerate(replies):
        assert told == f"town-{i % 40}" if status == 200 else told.startswith("too busy: ")


def test_thirty_threads_each_get_their_own_answer(server: Any):
    wrong: list[int] = []

    def ask(i: int) -> None:
        with httpx.Client() as client:
            for j in range(5):
                number = (7 * i + j) % 40
                reply = client.post(
                    f"{server.url}/retrieve", json={"queries": [f"town {number}"], "topk": 1 + j}, timeout=60
                )
                found = reply.json()["result"][0]
                if found[0]["id"] != f"town-{number}" or len(found) != 1 + j:
                    wrong.append(number)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
