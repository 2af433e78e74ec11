"""The routes, as an ASGI application: `/retrieve`, `/health`, `/info`, `/metrics`. Every reply but metrics is JSON.

Overload and a failing index are 503 with Retry-After, which every known client tries again; what a
client has to change is 400, 413 or 422, which none should.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth import __version__
from sleuth.errors import SleuthError
from sleuth.serving.metrics import CONTENT_TYPE, PATHS, Metrics
from sleuth.serving.rounds import Rounds
from sleuth.serving.service import Service
from sleuth.serving.wire import (
    RETRY_AFTER_S,
    RequestError,
    is_authorised,
    read_request,
    write_error,
    write_reply,
)


def build_app(service: Service, opened: Callable[[], None] = lambda: None) -> ASGIApp:
    """The application over one service, which it opens and closes; `opened` as in Service.start."""

    async def retrieve(request: Request) -> Response:
        _check_token(request, service.limits.token)
        wanted = read_request(await _body(request, service), service.limits)
        found = await service.find(wanted)
        return _json(write_reply(found, with_scores=wanted.with_scores))

    async def health(_: Request) -> Response:
        if service.metrics.all_ready:
            return _json(b'{"status":"ready"}')
        return _json(b'{"status":"opening"}', 503)

    async def info(request: Request) -> Response:
        _check_token(request, service.limits.token)
        shown = {"topk": service.limits.top_k, "max_topk": service.limits.max_top_k}
        shown |= {name: getattr(service.limits, name) for name in ("max_queries", "max_body_bytes")}
        facts = {"server": "sleuth", "version": __version__, "ready": service.metrics.all_ready}
        return _json(msgspec.json.encode(facts | {"retriever": service.identity, "limits": shown}))

    async def metrics(request: Request) -> Response:
        _check_token(request, service.limits.token)
        return Response(service.metrics.render(), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Rounds]]:
        service.start(opened)
        yield {"rounds": Rounds(service)}
        await service.close()

    app = Starlette(
        routes=[
            Route("/retrieve", retrieve, methods=["POST"]),
            Route("/health", health),
            Route("/info", info),
            Route("/metrics", metrics),
        ],
        exception_handlers={
            RequestError: _refused,
            SleuthError: _failed,
            HTTPException: _no_such,
            Exception: _broken,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return _Counted(app, service.metrics)


def _json(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    if status == 503:
        headers = {"Retry-After": str(RETRY_AFTER_S)} | (headers or {})
    return Response(content, status, headers, media_type="application/json")


def _check_token(request: Request, token: str) -> None:
    """RequestError 401 unless the request carries `token`."""
    if not is_authorised(request.headers.get("Authorization", "").encode("latin-1"), token):
        raise RequestError(401, "a token is needed: send 'Authorization: Bearer TOKEN'")


async def _body(request: Request, service: Service) -> bytes:
    """The body; RequestError 408, 413 or 415 if it is late, too long or compressed."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RequestError(415, "a compressed body is not taken")
    most = service.limits.max_body_bytes
    declared = request.headers.get("Content-Length", "0")
    if len(declared) > 18 or int(declared) > most:
        raise RequestError(413, f"the body is {declared[:20]} bytes long, at most {most} are taken")
    chunks, size = [], 0
    try:
        async with asyncio.timeout(service.limits.body_timeout_s):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > most:
                    raise RequestError(413, f"the body is longer than {most} bytes")
    except TimeoutError as error:
        raise RequestError(
            408, f"the request did not arrive within {service.limits.body_timeout_s:g} s"
        ) from error
    except ClientDisconnect as error:
        raise RequestError(400, "the client left before the request was whole") from error
    return b"".join(chunks)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    headers = {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}}.get(error.status)
    return _json(write_error(str(error)), error.status, headers)


async def _failed(_: Request, error: Exception) -> Response:
    return _json(write_error(str(error)), 503)


async def _no_such(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reason = {
        404: f"no such route; there are {', '.join(PATHS)}",
        405: f"{request.method} is not answered here",
    }
    headers = dict(error.headers) if error.headers else None
    return _json(write_error(reason.get(error.status_code, error.detail)), error.status_code, headers)


async def _broken(_: Request, __: Exception) -> Response:
    # The trace goes to the log, never to the client.
    return _json(write_error("internal error; the server's log tells more"), 500)


class _Counted:
    """Counts and times every request around an application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        path = scope["path"] if scope["path"] in PATHS else "other"
        status = 500
        begun = False

        async def counting(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
            await send(message)

        try:
            await self._app(scope, receive, counting)
        except asyncio.CancelledError:
            # The server ends, and this took longer than it waits. uvicorn would say so in words of its own.
            if begun:
                raise
            reply = _json(write_error("the server ended before an answer was found"), 503)
            await reply(scope, receive, counting)
        finally:
            self._metrics.answered(path, status, time.perf_counter() - start)
