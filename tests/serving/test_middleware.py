"""Middleware around applications of any kind."""

import asyncio

import pytest
from prometheus_client.registry import REGISTRY
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.serving.metrics import CountRequests
from sleuth.serving.middleware import Deadline


def call(app: ASGIApp, path: str = "/") -> list[Message]:
    """Messages that the application sends for a request without a body."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(app({"type": "http", "path": path}, receive, send), 20))  # type: ignore[arg-type]
    return sent


def count(path: str, status: str) -> float:
    labels = {"path": path, "status": status}
    return REGISTRY.get_sample_value("sleuth_request_seconds_count", labels) or 0.0


def test_crash_is_counted_as_500():
    async def crash(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    before = count("/a", "500")
    with pytest.raises(ZeroDivisionError):
        call(CountRequests(crash, ("/a",)), "/a")
    assert count("/a", "500") == before + 1


def test_deadline_does_not_cut_a_stream_that_has_started():
    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.3)
        await send({"type": "http.response.body", "body": b"done"})

    assert call(Deadline(stream, 0.05))[-1]["body"] == b"done"
