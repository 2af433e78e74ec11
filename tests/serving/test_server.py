"""The process: arguments, signals, workers and many connections at once."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from serving.conftest import launch
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.rerank import Rerank
from support.cross_encoder import save_cross_encoder

T = TypeVar("T")

SLOW_SERVER = """
import sys, time
from sleuth.retrievers.base import Retriever
from sleuth.serving import server
from sleuth.serving.limits import Limits
from sleuth.types import Hit, Passage
class Slow(Retriever):
    def search(self, queries, k):
        if queries != ["first search"]:
            time.sleep(float(sys.argv[1]))
        return [[Hit(Passage("p", "", query), 1.0)] for query in queries]
server.GRACE_S = 1
listening = server.listen("127.0.0.1", 0)
print(server.address(listening) + "/retrieve", flush=True)
server.serve(Slow, listening, Limits())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sleuth", "serve-retriever", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def wait_for(look: Callable[[], T]) -> T:
    """The first result that is not empty."""
    for _ in range(300):
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("nothing within 30 s")


def children(server: Any) -> list[int]:
    """Process ids of the workers."""
    done = subprocess.run(["pgrep", "-P", str(server.process.pid), "-f", "spawn_main"], capture_output=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{folder}/none", "--port", "0"], "does not exist"),
        (["{folder}", "--port", "0"], "is not an index"),
        (["{folder}", "--mcp"], "is not an index"),
        (["{folder}/none", "--port", "0", "--workers", "2"], "does not exist"),
        (["{index}", "--port", "0", "--workers", "0"], "workers must be at least 1, not 0"),
        (["{index}", "--port", "0", "--retriever", "bm52"], "did you mean 'bm25'"),
        (["{index}", "--port", "{taken}"], "cannot listen on '127.0.0.1' port"),
        (["{index}", "--port", "0", "--token", ""], "--token is empty"),
        (["{index}", "--port", "0", "--token", "grün"], "visible ASCII"),
    ],
)
def test_bad_arguments_are_one_line(index: Path, tmp_path: Path, arguments: list[str], words: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values = {"folder": str(tmp_path), "index": str(index), "taken": taken.getsockname()[1]}
        done = run(*(argument.format(**values) for argument in arguments))
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("sleuth: ")


def test_token_from_the_environment(start: Callable[..., Any]):
    server = start(environment={"SLEUTH_RETRIEVER_TOKEN": "s3cret"})
    assert server.get("/info").status_code == 401
    assert server.get("/info", headers={"Authorization": "Bearer s3cret"}).status_code == 200


def test_hits_are_reranked_by_a_cross_encoder(start: Callable[..., Any], index: Path, tmp_path: Path):
    model = str(save_cross_encoder(tmp_path, num_labels=1))
    reply = start("--rerank", model).post({"queries": ["a houses"], "topk": 9, "return_scores": True})
    served = [(hit["document"]["id"], hit["score"]) for hit in reply.json()["result"][0]]
    here = Rerank(BM25(str(index)), CrossEncoder(model)).search(["a houses"], 9)[0]
    assert {name for name, _ in served} == {hit.passage.id for hit in here}
    assert [score for _, score in served] == pytest.approx([hit.score for hit in here], abs=1e-5)
    assert len(served) == 9


@pytest.mark.parametrize(("seconds", "status"), [("0.8", 200), ("3", 503)])
def test_shutdown_answers_running_requests_within_the_grace_period(tmp_path: Path, seconds: str, status: int):
    script = tmp_path / "slow.py"
    script.write_text(SLOW_SERVER)
    server = launch([str(script), seconds])
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(server.post, {"query": "q"})
        server.wait_until("queries_total", 1)
        server.process.terminate()
        assert reply.result().status_code == status
    if status == 503:
        assert reply.result().json() == {"error": "the server is shutting down; try again"}
    assert server.process.wait(timeout=20) == -signal.SIGTERM
    with pytest.raises(httpx.ConnectError):
        server.get("/health")


def test_workers_are_one_server(start: Callable[..., Any]):
    server = start("--workers", "2", "--token", "s3cret")
    token = {"Authorization": "Bearer s3cret"}
    for i in range(12):  # each on a connection of its own
        assert server.post({"queries": ["a"]}).status_code == 401
        reply = server.post({"queries": [f"town {i}"], "topk": 1}, headers=token)
        assert reply.json()["result"][0][0]["id"] == f"town-{i}"
    for _ in range(5):
        assert "sleuth_queries_total 12.0\n" in server.get("/metrics", headers=token).text
    assert len(children(server)) == 2
    assert server.stop() == 0
    with pytest.raises(httpx.ConnectError):
        server.get("/health")


def test_killed_worker_is_replaced(start: Callable[..., Any]):
    server = start("--workers", "2")
    before = wait_for(lambda: children(server) if len(children(server)) == 2 else [])
    os.kill(before[0], signal.SIGKILL)
    wait_for(lambda: set(children(server)) - set(before))
    assert server.post({"queries": ["town 3"]}).status_code == 200


def test_worker_that_opens_another_index_stops_the_server(tmp_path: Path):
    script = tmp_path / "changing.py"
    script.write_text("""
import os
from sleuth.retrievers.base import Retriever
from sleuth.serving.limits import Limits
from sleuth.serving.server import listen, serve
class Changing(Retriever):
    def search(self, queries, k):
        return [[] for _ in queries]
    def identity(self):
        return {"index": str(os.getpid())}
if __name__ == "__main__":
    serve(Changing, listen("127.0.0.1", 0), Limits(), 2)
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "the index was changed while workers opened it" in done.stderr
    assert "a worker could not open the index" in done.stderr


async def ask(server: Any, number: int) -> list[tuple[int, str]]:
    """Status and best id of queries that are sent at once, each on a connection of its own."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        bodies = ({"queries": [f"town {i % 40} houses {i}"], "topk": 1} for i in range(number))
        replies = await asyncio.gather(*(client.post(f"{server.url}/retrieve", json=body) for body in bodies))
    return [(reply.status_code, reply.json()["result"][0][0]["id"]) for reply in replies]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_thousand_connections_at_once(start: Callable[..., Any], workers: str):
    replies = asyncio.run(ask(start("--cache-bytes", "0", "--workers", workers), 1000))
    assert replies == [(200, f"town-{i % 40}") for i in range(1000)]


def test_interrupt_exits_with_130(start: Callable[..., Any]):
    server = start()
    assert server.get("/health").status_code == 200  # uvicorn handles signals from now on
    server.process.send_signal(signal.SIGINT)
    _, err = server.process.communicate(timeout=40)
    assert (server.process.returncode, err) == (130, "sleuth: interrupted\n")
    with pytest.raises(httpx.ConnectError):
        server.get("/health")
