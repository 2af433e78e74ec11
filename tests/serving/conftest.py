"""Servers as they are run: processes on free ports of this machine, over a small index."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from sleuth.retrievers.bm25_index.build import build_index
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

    process: subprocess.Popen[str]
    url: str
    gate: Path | None = None
    """What a server of `start_odd` waits for: searches are held until it exists."""

    def post(self, body: object, **options: object) -> httpx.Response:
        """One request to /retrieve."""
        return httpx.post(f"{self.url}/retrieve", json=body, **({"timeout": 60} | options))

    def get(self, path: str, **options: object) -> httpx.Response:
        """One request to another route."""
        return httpx.get(self.url + path, **({"timeout": 60} | options))

    def wait_ready(self) -> None:
        """Until /health says so."""
        for _ in range(600):
            if self.get("/health").status_code == 200:
                return
            assert self.process.poll() is None, "the server ended"
            time.sleep(0.05)
        raise AssertionError("not ready within 30 s")

    def wait_until(self, gauge: str, value: int) -> None:
        """Until a gauge of /metrics has a value."""
        for _ in range(600):
            if f"sleuth_{gauge} {value}\n" in self.get("/metrics").text:
                return
            time.sleep(0.05)
        raise AssertionError(f"{gauge} is not {value} within 30 s")

    def open_gate(self) -> None:
        """Let the searches go on."""
        assert self.gate is not None
        self.gate.touch()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serving") / "index"
    build_index(PASSAGES, path)
    return path


def launch(arguments: list[str], environment: dict[str, str] | None = None) -> Server:
    """A server process, as soon as it says where it listens."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {}),
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"(http://\S+)/retrieve", line)
    if not found:
        _, err = process.communicate(timeout=30)
        raise AssertionError(f"no address in {line!r}: {err}")
    return Server(process, found[1])


@pytest.fixture
def start(index: Path) -> Iterator[Callable[..., Server]]:
    """sleuth serve-retriever with arguments of one's own; ended after the test."""
    servers: list[Server] = []

    def begin(*arguments: str, ready: bool = True, environment: dict[str, str] | None = None) -> Server:
        command = ["-m", "sleuth", "serve-retriever", str(index), "--port", "0", *arguments]
        servers.append(launch(command, environment))
        if ready:
            servers[-1].wait_ready()
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture
def start_odd(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server over a retriever written for the test: `source` defines `open_retriever` and `limits`.

    `pass_gate()` in it waits until the test calls `open_gate`.
    """
    servers: list[Server] = []
    frame = """
import os, time
from sleuth.errors import RetrievalError
from sleuth.retrievers.base import Retriever
from sleuth.serving.limits import Limits
from sleuth.serving.server import address, listen, serve
from sleuth.types import Hit, Passage
def pass_gate():
    while not os.path.exists({gate!r}):
        time.sleep(0.01)
{source}
listening = listen("127.0.0.1", 0)
print(address(listening) + "/retrieve", flush=True)
serve(open_retriever, listening, limits)
"""

    def begin(source: str, *, ready: bool = True) -> Server:
        script = tmp_path / f"odd{len(servers)}.py"
        gate = tmp_path / f"gate{len(servers)}"
        script.write_text(frame.format(source=source, gate=str(gate)))
        servers.append(replace(launch([str(script)]), gate=gate))
        if ready:
            servers[-1].wait_ready()
        return servers[-1]

    yield begin
    for server in servers:
        server.open_gate()
        server.stop()


@pytest.fixture(scope="session")
def server(index: Path) -> Iterator[Server]:
    """One server with its defaults, for all tests that only ask."""
    running = launch(["-m", "sleuth", "serve-retriever", str(index), "--port", "0"])
    running.wait_ready()
    yield running
    assert running.stop() == 0
