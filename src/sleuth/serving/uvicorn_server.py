"""uvicorn's server, which takes one connection at a time and ends when it said it would."""

from __future__ import annotations

import os
import signal
import threading
from socket import socket
from types import FrameType

from uvicorn import Config, Server


class UvicornServer(Server):
    """Takes one connection in each turn of its event loop.

    So workers on one socket get about equal shares, and a process out of file descriptors says so once a second,
    not once for every connection that waits. Its configuration says so by a backlog of 1, which the event loop
    takes for both.
    """

    def __init__(self, config: Config, backlog: int, grace_s: float) -> None:
        """`backlog`: connections that may wait to be accepted; `grace_s`: from a signal to the end at the latest."""
        super().__init__(config)
        self._backlog = backlog
        self._grace_s = grace_s
        self._end: threading.Timer | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(self._backlog)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: stop listening, answer, and end; a search cannot be interrupted, so a thread may go on."""
        super().handle_exit(sig, frame)
        if self._end is None:
            code = 0 if sig == signal.SIGTERM else 128 + sig
            self._end = threading.Timer(self._grace_s, os._exit, (code,))
            self._end.daemon = True
            self._end.start()

    def ended(self) -> None:
        """Nothing is under way any more."""
        if self._end is not None:
            self._end.cancel()
