"""ASGI middleware with limits that every server needs: bearer token, body size and deadline."""

import asyncio
import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.serving.replies import Refuse, error_response


class BearerToken:
    """Refuses requests without the right `Authorization: Bearer …` with 401."""

    def __init__(
        self, app: ASGIApp, token: str, open_paths: tuple[str, ...] = (), refuse: Refuse = error_response
    ) -> None:
        """`open_paths`: routes that need no token."""
        self._refuse = refuse
        self._app = app
        self._token = token.encode()
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._open_paths and not self._accepts(scope):
            reason = "a token is needed: send 'Authorization: Bearer TOKEN'"
            await self._refuse(401, reason, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _accepts(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        scheme, _, value = given.partition(b" ")
        # Compared in constant time, so that a token cannot be guessed byte by byte.
        return hmac.compare_digest(value.strip(), self._token) and scheme.lower() == b"bearer"


class BodyLimit:
    """Refuses bodies of more than `max_bytes` with 413. The application receives the body as one message."""

    def __init__(self, app: ASGIApp, max_bytes: int, refuse: Refuse = error_response) -> None:
        self._app = app
        self._refuse = refuse
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        size = int(declared[:20]) if declared.isdigit() else 0
        body = bytearray()
        more = True
        while more and size <= self._max_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            size = max(size, len(body))
            more = message.get("more_body", False)
        if size > self._max_bytes:
            reason = f"the body has more than {self._max_bytes} bytes; send less in one request"
            await self._refuse(413, reason, None)(scope, receive, send)
            return
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def receive_whole() -> Message:
            nonlocal whole
            message, whole = whole, None
            return message or await receive()

        await self._app(scope, receive_whole, send)


class Deadline:
    """Answers 503 if a response has not started `seconds` after its request, or if the server shuts down."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        task = asyncio.current_task()
        assert task is not None
        reason = f"not answered within {self._seconds:g} s; try again"
        timer = asyncio.get_running_loop().call_later(self._seconds, task.cancel, reason)
        started = False

        async def observed(message: Message) -> None:
            nonlocal started
            if not started:
                started = True
                timer.cancel()  # a stream may take longer
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except asyncio.CancelledError as error:
            if started:
                raise
            if error.args != (reason,):
                reason = "the server is shutting down; try again"
            await error_response(503, reason, {"Connection": "close"})(scope, receive, send)
        finally:
            timer.cancel()
