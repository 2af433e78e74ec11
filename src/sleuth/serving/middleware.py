"""ASGI middleware with limits that every server needs: bearer token, body size and deadline."""

from __future__ import annotations

import asyncio
import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.serving.replies import RequestError, error_response


class BearerToken:
    """Refuses requests without the right `Authorization: Bearer …` with 401."""

    def __init__(self, app: ASGIApp, token: str, open_paths: tuple[str, ...] = ()) -> None:
        """`open_paths`: routes that need no token."""
        self._app = app
        self._token = token.encode()
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and scope["path"] not in self._open_paths and not self._accepts(scope):
            refusal = error_response(
                401, "a token is needed: send 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _accepts(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        scheme, _, value = given.partition(b" ")
        # Compared in constant time, so that a token cannot be guessed byte by byte.
        return hmac.compare_digest(value.strip(), self._token) and scheme.lower() == b"bearer"


class BodyLimit:
    """Refuses bodies of more than `max_bytes` with 413, by their declared or their actual size."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. The application must turn RequestError into a response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reason = f"the body has more than {self._max_bytes} bytes; send fewer queries per request"
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > self._max_bytes:
            await error_response(413, reason)(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max_bytes:
                raise RequestError(413, reason)
            return message

        await self._app(scope, receive if declared else counted, send)


class Deadline:
    """Answers 503 if a response has not started `seconds` after its request, or if the server shuts down."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def observed(message: Message) -> None:
            nonlocal started
            if not started:
                started = True
                timeout.reschedule(None)  # a stream may take longer
            await send(message)

        try:
            async with asyncio.timeout(self._seconds) as timeout:
                await self._app(scope, receive, observed)
        except (TimeoutError, asyncio.CancelledError) as error:
            is_late = timeout.expired()
            if started or (isinstance(error, TimeoutError) and not is_late):
                raise
            reason = f"not answered within {self._seconds:g} s" if is_late else "the server is shutting down"
            await error_response(503, f"{reason}; try again", {"Connection": "close"})(scope, receive, send)
