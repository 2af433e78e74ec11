"""A server that replays exchanges: requests are answered with what was written down for their method and path."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """A request that the server received."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Recorded:
    """Exchanges are (method, path, status, body) or (…, headers); the last one of a method and path is repeated.

    A body is bytes, a JSON value, or a function of the request that returns either. A function in place of the
    status returns status and body.
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
                    held = answers.get((self.command, self.path), [(418, b"not recorded")])
                    answer = held.pop(0) if len(held) > 1 else held[0]
                status, payload, *rest = answer[0](request) if callable(answer[0]) else answer
                if callable(payload):
                    payload = payload(request)
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                headers = {"Content-Length": str(len(data)), "Content-Type": "application/json"}
                headers |= rest[0] if rest else {}
                with suppress(ConnectionError):  # the client did not wait
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data if self.command != "HEAD" else b"")
                    self.close_connection = len(data) < int(headers["Content-Length"])  # a truncated answer

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def sent(self, method: str, path: str) -> list[Request]:
        """The requests of that method and path, in the order of arrival."""
        return [request for request in self.requests if (request.method, request.path) == (method, path)]


@contextmanager
def replay(*exchanges: tuple[Any, ...]) -> Iterator[Recorded]:
    """Run a server that answers with the exchanges."""
    recorded = Recorded(exchanges)
    try:
        yield recorded
    finally:
        recorded.server.shutdown()
        recorded.server.server_close()
