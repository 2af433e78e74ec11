"""Front: answers plain requests to /retrieve as they come off the socket, and leaves all else to uvicorn.

A whole request with nothing unusual about it, whose passages are remembered or found within
milliseconds, needs no task, no routing and no thread. It writes 200 only. At the first request of
another kind the connection, with every byte that came, becomes uvicorn's until it ends: faults,
other routes, large or chunked bodies and slow retrievers are answered by the application alone.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sleuth.serving.service import Service
from sleuth.serving.wire import is_authorised, read_request, write_reply

_LONGEST_HEAD = 4096
_LONGEST_BODY = 1 << 16
_PIECES = 3
"""Chunks in which a request may come: HTTP libraries send head and body apart."""
_PATIENCE_S = 0.2
"""How long the rest of a request is waited for here; uvicorn and the application time the slow ones."""

_START = b"POST /retrieve HTTP/1.1\r\n"
# Stricter than uvicorn's parser, so that nothing is read here that it would read otherwise.
_HEAD = re.compile(
    re.escape(_START) + rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n", re.DOTALL
)
_MATTERS = re.compile(
    rb"\n(content-length|transfer-encoding|content-encoding|expect|upgrade|connection|authorization)"
    rb":[ \t]*([^\r]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Head:
    """What matters of a plain request's head."""

    length: int
    """Bytes of the body."""
    authorisation: bytes


@lru_cache(1024)
def read_head(head: bytes) -> Head | None:
    """The head of a request to /retrieve, from its first line to the empty one; None if it is not plain."""
    if not _HEAD.fullmatch(head):
        return None
    fields = [(name.lower(), value.strip(b" \t")) for name, value in _MATTERS.findall(head)]
    known = dict(fields)
    length = known.pop(b"content-length", b"")
    authorisation = known.pop(b"authorization", b"")
    if known.pop(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    # What is left changes how the body is read; a field given twice is the parser's to judge.
    if known or len({name for name, _ in fields}) < len(fields):
        return None
    if not length.isdigit() or len(length) > 9:
        return None
    return Head(int(length), authorisation)


class Front(asyncio.Protocol):
    """One connection; to be uvicorn's `http`. The application's lifespan state holds "service"."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._behind = partial(HttpToolsProtocol, config, server_state, app_state, _loop)
        self._service: Service = app_state["service"]
        self._state = server_state
        self._idle_s = config.timeout_keep_alive
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._held = b""
        """A request that is not whole yet."""
        self._pieces = 0
        self._heard_at = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)
        self._heard_at = self._loop.time()
        self._idle = self._loop.call_later(self._idle_s, self._end_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it; nothing is under way here."""
        self._forget()

    def data_received(self, data: bytes) -> None:
        """Answer a whole request, keep a part of one, or leave the connection to uvicorn."""
        start = time.perf_counter()
        self._heard_at = self._loop.time()
        held = self._held + data
        head, whole = _measure(held)
        if head and len(held) == whole:
            self._held, self._pieces = b"", 0
            if self._patience:
                self._patience.cancel()
                self._patience = None
            reply = self._answer(head, held[whole - head.length :])
            if reply is not None:
                self._transport.write(reply)
                self._service.metrics.answered("/retrieve", 200, time.perf_counter() - start)
                return
        self._held = held
        self._pieces += 1
        # A second request behind the first would be answered before its reply has left: uvicorn waits.
        if not len(held) < whole or self._pieces == _PIECES:
            self._leave()
        elif self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE_S, self._leave)

    def pause_writing(self) -> None:
        """A client that does not read its replies is not read either."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._transport.resume_reading()

    def shutdown(self) -> None:
        """Called by uvicorn once nobody is let in any more: what has begun to come is still answered."""
        if self._held:
            self._leave().shutdown()
        else:
            self._transport.close()

    @property
    def _connections(self) -> set[Any]:
        # Whoever is in this set is told to shut down, and waited for.
        return cast(set[Any], self._state.connections)

    def _answer(self, head: Head, body: bytes) -> bytes | None:
        """The whole reply, or None if it is not 200 or would take long."""
        service = self._service
        if not is_authorised(head.authorisation, service.limits.token):
            return None
        try:
            wanted = read_request(body, service.limits)
            found = service.find_now(wanted)
        except Exception:
            # Whatever it is, the application meets it again, and tells the client and the log.
            return None
        if found is None:
            return None
        content = write_reply(found, with_scores=wanted.with_scores)
        lines = [b"HTTP/1.1 200 OK"]
        lines += [name + b": " + value for name, value in self._state.default_headers]
        lines.append(b"content-length: %d\r\ncontent-type: application/json\r\n\r\n" % len(content))
        return b"\r\n".join(lines) + content

    def _leave(self) -> HttpToolsProtocol:
        """Hand the connection to uvicorn, from the first byte not yet answered."""
        held = self._held
        self._forget()
        behind = self._behind()
        self._transport.set_protocol(behind)
        behind.connection_made(self._transport)
        behind.data_received(held)
        return behind

    def _forget(self) -> None:
        self._connections.discard(self)
        for timer in (self._patience, self._idle):
            if timer:
                timer.cancel()

    def _end_if_idle(self) -> None:
        # One timer that looks again, rather than one for each request.
        left = self._heard_at + self._idle_s - self._loop.time()
        if left > 0:
            self._idle = self._loop.call_later(left, self._end_if_idle)
        else:
            self._transport.close()


def _measure(held: bytes) -> tuple[Head | None, int]:
    """The head in `held`, and how long the whole request is: one byte more than held if not known yet, 0 if not plain."""
    end = held.find(b"\r\n\r\n", 0, _LONGEST_HEAD)
    if end < 0:
        plain = held.startswith(_START) if len(held) > len(_START) else _START.startswith(held)
        return None, len(held) + 1 if plain and len(held) < _LONGEST_HEAD else 0
    head = read_head(held[: end + 4])
    if head is None or head.length > _LONGEST_BODY:
        return None, 0
    return head, end + 4 + head.length
