"""An encoder whose vectors can be worked out by hand, indexes of it, and a server that answers as written down."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from sleuth.encoders.base import Encoder
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.dense_index.build import build_dense
from sleuth.types import Passage


@dataclass(frozen=True)
class Letters(Encoder):
    """How often each of a, b, c, … occurs, scaled to length 1; a text without them is the zero vector."""

    alphabet: str = "abcdefgh"
    query_prefix: str = ""

    @property
    def name(self) -> str:
        return "letters"

    @property
    def dimension(self) -> int:
        return len(self.alphabet)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.count(letter) for letter in self.alphabet] for text in texts])
        rows = counts.reshape(len(texts), self.dimension).astype(np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def encode_queries(self, queries: Sequence[str]) -> NDArray[np.float32]:
        return self.encode([self.query_prefix + query for query in queries])


FRUIT = [Passage("p1", "", "a"), Passage("p2", "", "b"), Passage("p3", "b", "a"), Passage("p0", "", "b")]


@pytest.fixture
def letters() -> Encoder:
    """Counts of the first eight letters."""
    return Letters()


@pytest.fixture
def other_letters() -> Encoder:
    """The same with something before every query."""
    return Letters(query_prefix="hh")


@pytest.fixture
def fruit() -> list[Passage]:
    """a · b · b a · b, the last with the first id."""
    return FRUIT


@pytest.fixture
def index(tmp_path: Path, letters: Encoder) -> Path:
    """Words and vectors of the fruit."""
    build_index(FRUIT, tmp_path / "i")
    build_dense(tmp_path / "i", tmp_path / "i" / "dense", letters)
    return tmp_path / "i"


class Request(NamedTuple):
    """What a client sent."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Recorded:
    """A server that answers (method, path) with what was written down for it, in turn; the last answer stays.

    An exchange is (method, path, status, body) or (…, headers); a body is bytes or becomes JSON, or is made from the request.
    """

    def __init__(self, exchanges: Sequence[tuple[Any, ...]]) -> None:
        self.requests: list[Request] = []
        answers: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
        for method, path, *answer in exchanges:
            answers.setdefault((method, path), []).append(tuple(answer))
        lock, recorded = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                with lock:
                    body = self.rfile.read(length)
                    request = Request(self.command, self.path, body, dict(self.headers))
                    recorded.requests.append(request)
                    held = answers.get((self.command, self.path), [(418, b"not written down")])
                    status, payload, *rest = held.pop(0) if len(held) > 1 else held[0]
                if callable(payload):
                    payload = payload(request)
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                self.send_response(status)
                headers = {"Content-Length": str(len(data)), "Content-Type": "application/json"}
                for name, value in (headers | (rest[0] if rest else {})).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_PUT = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def sent(self, method: str, path: str) -> list[Request]:
        """The requests of that kind."""
        return [request for request in self.requests if (request.method, request.path) == (method, path)]


@pytest.fixture
def recorded() -> Iterator[Callable[..., Recorded]]:
    """Starts servers from exchanges."""
    started: list[Recorded] = []

    def start(*exchanges: tuple[Any, ...]) -> Recorded:
        started.append(Recorded(exchanges))
        return started[-1]

    yield start
    for each in started:
        each.server.shutdown()
        each.server.server_close()
