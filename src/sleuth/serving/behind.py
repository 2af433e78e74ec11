"""uvicorn's end of a connection, which knows less mercy: a request comes whole within its time, or is given up.

uvicorn itself waits for the rest of a head for ever and takes one of any size.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sleuth.serving.service import Service
from sleuth.serving.wire import write_error

LONGEST_HEAD = 1 << 16
"""Bytes of a head that has not ended."""
_UPGRADE = re.compile(rb"\r\n(?:upgrade|connection|http2-settings):[^\r\n]*", re.IGNORECASE)


class Behind(HttpToolsProtocol):
    """One connection. What cannot become a request is refused here, as the application words it."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._service: Service = app_state["rounds"].service
        self._due: asyncio.TimerHandle | None = None
        """Runs from a request's first byte until it is whole."""
        self._in_head = False
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take part of a request."""
        if self._due is None:
            self._wait_for_rest()
            data = _without_upgrade(data)
        was_in_head = self._in_head
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if was_in_head and self._in_head else 0
        if self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
            self._refuse(431, f"the head of a request is at most {LONGEST_HEAD} bytes long")

    def on_message_begin(self) -> None:
        """The parser met a request."""
        super().on_message_begin()
        self._in_head = True
        if self._due is None:  # it stands behind another one in the same packet
            self._wait_for_rest()

    def on_headers_complete(self) -> None:
        """The parser met the end of a head."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The parser met the end of a request."""
        self._forget_due()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._forget_due()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What the parser cannot read."""
        self._refuse(400, msg)

    def _wait_for_rest(self) -> None:
        self._due = self.loop.call_later(self._service.limits.body_timeout_s, self._give_up)

    def _forget_due(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_for_rest()  # the application is at it, and has a limit of its own for the body
        elif self._in_head:
            self._refuse(408, f"the request did not arrive within {self._service.limits.body_timeout_s:g} s")
        else:
            self.transport.close()  # answered already, and the body does not end

    def _refuse(self, status: int, why: str) -> None:
        fields = [*self.server_state.default_headers, (b"connection", b"close")]
        self.transport.write(written(status, fields, write_error(why)))
        self.transport.close()
        self._service.metrics.answered("other", status, 0.0)


def written(status: int, fields: Iterable[tuple[bytes, bytes]], content: bytes) -> bytes:
    """A reply of JSON as it goes over the wire, with `fields` in its head."""
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [name + b": " + value for name, value in fields]
    lines.append(b"content-length: %d\r\ncontent-type: application/json\r\n\r\n" % len(content))
    return b"\r\n".join(lines) + content


def _without_upgrade(data: bytes) -> bytes:
    """A request that offers another protocol (Java's client offers HTTP/2 at first), as if it did not.

    The parser would take its body for that protocol's.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    if end and b"\nupgrade:" in head.lower():
        head = _UPGRADE.sub(b"", head)
    return head + end + rest
