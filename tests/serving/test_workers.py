"""Several processes on one socket are one server: to clients, to Prometheus, and to whoever ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest


def children(server: Any) -> list[int]:
    """Process ids of the workers."""
    done = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def is_listening(server: Any) -> bool:
    address = urlsplit(server.url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=20).close()
    except ConnectionError:
        return False
    return True


def wait_until_gone(server: Any) -> None:
    for _ in range(600):
        if not is_listening(server):
            return
        time.sleep(0.05)
    raise AssertionError("somebody still listens after 30 s")


def test_workers_are_one_server(start: Callable[..., Any]):
    server = start("--workers", "3")
    assert len(children(server)) == 3
    assert server.process.stdout.readline() == "ready: 44 passages\n"
    for i in range(12):  # each on a connection of its own
        reply = server.post({"queries": [f"town {i}"], "topk": 1})
        assert reply.json()["result"][0][0]["id"] == f"town-{i}"
    for _ in range(5):
        server.wait_until('requests_total{path="/retrieve",status="200"}', 12)
        server.wait_until("queries_total", 12)
        server.wait_until("ready", 1)
    assert server.get("/info").json()["ready"] is True
    assert server.stop() == 0
    assert not is_listening(server)


def test_an_interrupt_ends_all(start: Callable[..., Any]):
    server = start("--workers", "2")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(40) == 130
    assert not is_listening(server)


def test_a_worker_that_is_killed_ends_the_server(start: Callable[..., Any]):
    server = start("--workers", "2")
    os.kill(children(server)[0], signal.SIGKILL)
    _, err = server.process.communicate(timeout=40)
    assert server.process.returncode == 1
    assert err == "sleuth: a worker ended with exit code -9\n"
    assert not is_listening(server)


def test_workers_do_not_outlive_a_killed_parent(start: Callable[..., Any]):
    server = start("--workers", "2")
    server.process.kill()
    wait_until_gone(server)


def test_what_cannot_be_served(index: Path, tmp_path: Path):
    for arguments, words in (
        ([str(tmp_path / "none"), "--workers", "2"], "does not exist"),
        ([str(index), "--workers", "0"], "workers must be at least 1, not 0"),
    ):
        command = [sys.executable, "-m", "sleuth", "serve-retriever", *arguments, "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


def test_workers_that_opened_different_indexes_are_no_server():
    script = """
import os
from sleuth.retrievers.base import Retriever
from sleuth.serving.limits import Limits
from sleuth.serving.server import listen
from sleuth.serving.workers import serve_many
class Changing(Retriever):
    def search(self, queries, k):
        return [[] for _ in queries]
    def identity(self):
        return {"index": str(os.getpid())}
serve_many(Changing, listen("127.0.0.1", 0), Limits(), 2)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "the index was changed while workers opened it" in done.stderr


@pytest.mark.slow
def test_a_token_and_a_limit_hold_for_every_worker(start: Callable[..., Any]):
    server = start("--workers", "2", "--token", "s3cret", "--max-queries", "2")
    with httpx.Client(timeout=60) as client:
        right = {"Authorization": "Bearer s3cret"}
        for _ in range(8):
            assert server.post({"queries": ["a"]}).status_code == 401
            assert server.post({"queries": ["a"] * 3}, headers=right).status_code == 413
            reply = client.post(f"{server.url}/retrieve", json={"queries": ["radium"]}, headers=right)
            assert reply.status_code == 200
