"""Rounds: requests that were read in one turn of the event loop are searched together, and then all answered.

Nobody waits for a round: whatever has been read by the next turn is in it. Reading, searching and sending by
turns for each request would cost a fifth more, since each reply wakes a client in the midst of the searches.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from sleuth.serving.batching import AT_ONCE, AT_ONCE_S
from sleuth.serving.service import Service
from sleuth.serving.wire import read_request, write_reply

Answer = Callable[[bytes | None], None]
"""Takes the body of a reply of status 200, or None if there is another one or it would take long."""


class Rounds:
    """Between the connections of one event loop and the service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._asked: deque[tuple[bytes, Answer]] = deque()

    def ask(self, body: bytes, answer: Answer) -> None:
        """Have the request with this body answered in the next round."""
        if not self._asked:
            asyncio.get_running_loop().call_soon(self._run)
        self._asked.append((body, answer))

    def _run(self) -> None:
        """Answer some; the rest after what else the event loop has to do."""
        replies: deque[tuple[bytes | None, Answer]] = deque()
        end = time.perf_counter() + AT_ONCE_S
        while self._asked and len(replies) < AT_ONCE and time.perf_counter() < end:
            body, answer = self._asked.popleft()
            replies.append((self._reply(body), answer))
        if self._asked:
            asyncio.get_running_loop().call_soon(self._run)
        _send(replies)

    def _reply(self, body: bytes) -> bytes | None:
        try:
            wanted = read_request(body, self.service.limits)
            found = self.service.find_now(wanted)
        except Exception:
            # Whatever it is, the application meets it again, and tells the client and the log.
            return None
        return None if found is None else write_reply(found, with_scores=wanted.with_scores)


def _send(replies: deque[tuple[bytes | None, Answer]]) -> None:
    try:
        while replies:
            reply, answer = replies.popleft()
            answer(reply)
    finally:
        if replies:  # one that fails takes no other along
            asyncio.get_running_loop().call_soon(_send, replies)
