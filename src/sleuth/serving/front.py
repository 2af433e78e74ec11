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
from uvicorn.server import ServerState

from sleuth.serving.behind import Behind, written
from sleuth.serving.limits import Limits
from sleuth.serving.rounds import Rounds
from sleuth.serving.wire import is_authorised

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
    """One connection; to be uvicorn's `http`. The application's lifespan state holds "rounds"."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._behind = partial(Behind, config, server_state, app_state, _loop)
        self._rounds: Rounds = app_state["rounds"]
        self._state = server_state
        self._idle_s = config.timeout_keep_alive
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._held = b""
        """From the first byte not yet answered on."""
        self._whole = 0
        """Length of the request in `_held` that is being answered; 0 = none."""
        self._pieces = 0
        self._heard_at = self._asked_at = 0.0
        self._is_ending = self._is_full = False
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
        """Have a whole request answered, keep a part of one, or leave the connection to uvicorn."""
        self._heard_at = self._loop.time()
        self._held += data
        if self._whole:
            # A second request before the first is answered: enough has been read for now.
            self._transport.pause_reading()
            return
        head, whole = _measure(self._held)
        if head and len(self._held) == whole and is_authorised(head.authorisation, self._limits.token):
            self._ask(head, whole)
            return
        self._pieces += 1
        if len(self._held) >= whole or self._pieces == _PIECES:
            self._leave()
        elif self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE_S, self._leave)

    def pause_writing(self) -> None:
        """A client that does not read its replies is not read either."""
        self._is_full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._is_full = False
        self._transport.resume_reading()

    def shutdown(self) -> None:
        """Called by uvicorn once nobody is let in any more: what has begun to come is still answered."""
        self._is_ending = True
        if not self._held:
            self._transport.close()
        elif not self._whole:
            self._leave()

    @property
    def _connections(self) -> set[Any]:
        # Whoever is in this set is told to shut down, and waited for.
        return cast(set[Any], self._state.connections)

    @property
    def _limits(self) -> Limits:
        return self._rounds.service.limits

    def _ask(self, head: Head, whole: int) -> None:
        if self._patience:
            self._patience.cancel()
            self._patience = None
        self._whole, self._pieces = whole, 0
        self._asked_at = time.perf_counter()
        self._rounds.ask(self._held[whole - head.length :], self._answer)

    def _answer(self, content: bytes | None) -> None:
        """Send the reply, or leave it to uvicorn if there is none."""
        if self._transport.is_closing():
            return
        if content is None:
            self._leave()
            return
        self._transport.write(written(200, self._state.default_headers, content))
        self._rounds.service.metrics.answered("/retrieve", 200, time.perf_counter() - self._asked_at)
        self._held, self._whole = self._held[self._whole :], 0
        if self._held:
            self._leave()
        elif self._is_ending:
            self._transport.close()

    def _leave(self) -> None:
        """Hand the connection to uvicorn, from the first byte not yet answered."""
        self._forget()
        behind = self._behind()
        self._transport.set_protocol(behind)
        behind.connection_made(self._transport)
        if self._is_full:
            behind.pause_writing()
        else:
            self._transport.resume_reading()
        behind.data_received(self._held)
        if self._is_ending:
            behind.shutdown()

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
