"""Servers for the tests: `sleuth serve-retriever` as a process, or an application in a thread of the test."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.serving.app import build_app
from sleuth.serving.limits import Limits
from sleuth.serving.server import address, listen
from sleuth.types import Passage

PASSAGES = [
    Passage("curie", "Marie Curie", "She was born in Warsaw in 1867.\nShe discovered radium."),
    Passage("heroes", '"Heroes" (David Bowie album)', "It was recorded in Berlin."),
    Passage("7", "", "Copper is mined in Chile, near Calama."),
    Passage("a/b ?é", "Moss\nAtlas", "It was drawn in Berlin by Ida Renn."),
    *(Passage(f"town-{i}", f"Town {i}", f"A town of {i} houses and one river.") for i in range(40)),
]


@dataclass
class Server:
    """A running server."""

    url: str

    def post(self, body: object, **options: Any) -> httpx.Response:
        """One request to /retrieve."""
        return httpx.post(f"{self.url}/retrieve", json=body, **({"timeout": 60} | options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        """One request to another route."""
        return httpx.get(self.url + path, **({"timeout": 60} | options))

    def metric(self, name: str) -> float:
        """Value of a metric; 0 if it is absent."""
        found = re.search(rf"(?m)^sleuth_{re.escape(name)} (\S+)$", self.get("/metrics").text)
        return float(found[1]) if found else 0.0

    def wait_until(self, name: str, value: float) -> None:
        """Return as soon as a metric has a value."""
        for _ in range(600):
            if self.metric(name) == value:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} is {self.metric(name)}, not {value}, after 30 s")


@dataclass
class ServerProcess(Server):
    """A server in a process of its own."""

    process: subprocess.Popen[str] = field(kw_only=True)

    def stop(self) -> int:
        """Send SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


def launch(arguments: list[str], environment: dict[str, str] | None = None) -> ServerProcess:
    """A server process that has printed its address."""
    # A shell that runs the tests in the background has SIGINT ignored, which children inherit. A preexec_fn
    # would run gRPC's handlers of fork in the child, which fail once another test has used gRPC.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {}),
        )
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"(http://\S+)/retrieve", line)
    if not found:
        _, err = process.communicate(timeout=30)
        raise AssertionError(f"no address in {line!r}: {err}")
    return ServerProcess(found[1], process=process)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serving") / "index"
    build_index(PASSAGES, path)
    return path


@pytest.fixture
def start(index: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Start sleuth serve-retriever with the given arguments; stopped after the test."""
    servers: list[ServerProcess] = []

    def begin(*arguments: str, environment: dict[str, str] | None = None) -> ServerProcess:
        command = ["-m", "sleuth", "serve-retriever", str(index), "--port", "0", *arguments]
        servers.append(launch(command, environment))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(index: Path) -> Iterator[ServerProcess]:
    """One server with its defaults, for all tests that only send requests."""
    running = launch(["-m", "sleuth", "serve-retriever", str(index), "--port", "0"])
    yield running
    assert running.stop() == -signal.SIGTERM


@pytest.fixture
def serve_here() -> Iterator[Callable[..., Server]]:
    """Serve a retriever from a thread of the test; stopped after the test."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def begin(retriever: Retriever, **limits: Any) -> Server:
        listening = listen("127.0.0.1", 0)
        url = address(listening)
        config = uvicorn.Config(build_app(retriever, Limits(**limits)), log_level="critical")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        running.append((server, thread))
        return Server(url)

    yield begin
    for server, thread in running:
        server.should_exit = True
        thread.join(timeout=40)
        assert not thread.is_alive()
