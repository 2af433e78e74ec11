"""Routes: Chat Completions, Responses, models, feedback, health, metrics, and the web page with what it reads.

Every request is checked before its response starts. A client that leaves ends its episode.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from sleuth.agent import Reply
from sleuth.episodes.events import Event
from sleuth.errors import DataError, SleuthError, TooLongError
from sleuth.service import chat, wire
from sleuth.service.pool import AgentPool
from sleuth.service.responses import Writer
from sleuth.service.store import Feedback, Store
from sleuth.service.viewer import OPEN_PATHS, Viewer
from sleuth.serving.metrics import CountRequests, show_metrics
from sleuth.serving.middleware import BearerToken, BodyLimit
from sleuth.serving.replies import RequestError, json_response

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/models", "/health", "/metrics", "/feedback")
READING_S = 5.0
"""Seconds after the deadline in which a client can read how its stream ended."""
Events = AsyncGenerator[Event | Reply, None]


def build_app(pool: AgentPool, store: Store, viewer: Viewer, hosts: Sequence[str] = ("*",)) -> Starlette:
    """The application of `sleuth serve`; requests to other `hosts` get 400."""
    service = Service(pool, store)
    routes = [
        Route("/v1/chat/completions", service.chat, methods=["POST"]),
        Route("/v1/responses", service.responses, methods=["POST"]),
        Route("/v1/models", service.models, methods=["GET"]),
        Route("/v1/models/{name:path}", service.model, methods=["GET"]),
        Route("/feedback", service.feedback, methods=["POST"]),
        Route("/health", _healthy, methods=["GET"]),
        Route("/metrics", show_metrics),
    ]
    return _application([*routes, *viewer.routes], pool.limits.token, pool.limits.max_body_bytes, hosts)


def build_viewer_app(viewer: Viewer, token: str = "", hosts: Sequence[str] = ("*",)) -> Starlette:
    """The application of `sleuth show`; see `build_app`."""
    return _application([Route("/health", _healthy, methods=["GET"]), *viewer.routes], token, 1 << 20, hosts)


def _application(routes: list[BaseRoute], token: str, max_body_bytes: int, hosts: Sequence[str]) -> Starlette:
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(CountRequests, PATHS),
            Middleware(TrustedHostMiddleware, hosts),
            *([Middleware(BearerToken, token, ("/health", *OPEN_PATHS), refusal)] if token else []),
            Middleware(BodyLimit, max_body_bytes, refusal),
        ],
        exception_handlers=dict.fromkeys((RequestError, SleuthError, HTTPException, Exception), on_error),
    )
    app.router.redirect_slashes = False
    return app


async def _healthy(_: Request) -> Response:
    return json_response(b'{"status":"ready"}')


class Service:
    """Handlers of the endpoints that answer questions."""

    def __init__(self, pool: AgentPool, store: Store) -> None:
        self._pool, self._store = pool, store

    async def models(self, _: Request) -> Response:
        """Every agent by name."""
        return _json({"object": "list", "data": [self._model(name) for name in self._pool.agents]})

    async def model(self, request: Request) -> Response:
        """One agent."""
        name = request.path_params["name"]
        if name not in self._pool.agents:
            raise RequestError(404, f"unknown model {name!r}")
        return _json(self._model(name))

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        asked = wire.read(await _json_body(request), wire.ChatRequest)
        name, created, events = self._begin(asked)
        if asked.stream:
            lines = chat.chunks(events, name, asked, created)
            return self._stream(lines, events, lambda error: wire.sse({"error": error}))
        return _json(chat.completion(await _answered(request, events), name, asked, created))

    async def responses(self, request: Request) -> Response:
        """POST /v1/responses."""
        asked = wire.read(await _json_body(request), wire.ResponsesRequest)
        name, created, events = self._begin(asked)
        writer = Writer(name, asked, created)
        if asked.stream:
            return self._stream(writer.stream(events), events, writer.failed)
        written = _written(writer, events)
        return _json(writer.whole(await _answered(request, written)))

    async def feedback(self, request: Request) -> Response:
        """POST /feedback: a thumb, and a correction if there is one."""
        given = wire.decoded(await _json_body(request), Feedback)
        name = given.episode.removeprefix("resp_").removeprefix("chatcmpl-")
        if name not in self._store.names:
            raise RequestError(404, f"unknown episode {given.episode!r}: send the id of a reply")
        self._store.judge(msgspec.structs.replace(given, episode=name))
        return _json({"stored": True})

    def _begin(self, asked: wire.AgentRequest) -> tuple[str, int, Events]:
        """Name, time and events of a new episode, which is stored when it ends."""
        agent, name = self._pool.agent(asked), uuid.uuid4().hex

        async def stored() -> Events:
            async with aclosing(self._pool.play(agent, asked)) as events:
                async for event in events:
                    if isinstance(event, Reply):
                        self._store.add(name, asked.model, event.trajectory)
                    yield event

        return name, int(time.time()), stored()

    def _stream(
        self, lines: AsyncIterator[bytes], events: Events, on_failure: Callable[[dict[str, Any]], bytes]
    ) -> Response:
        """A response of server-sent events; an error after its start becomes its last event."""

        async def body() -> AsyncIterator[bytes]:
            async with aclosing(events):
                try:
                    async for line in lines:
                        yield line
                except Exception as error:
                    if (status := _status(error)) == 500:
                        logging.getLogger("uvicorn.error").exception("a stream broke off")
                    yield on_failure(wire.openai_error(_reason(error), status))

        return _EventStream(body(), self._pool.limits.timeout_s + READING_S)

    def _model(self, name: str) -> dict[str, Any]:
        recipe = self._pool.agents[name].recipe
        about = {"id": name, "object": "model", "created": self._pool.began, "owned_by": "sleuth"}
        return about | {"recipe": recipe.name, "description": recipe.source}


class _EventStream(StreamingResponse):
    """Server-sent events for at most `seconds`: a client that stops reading keeps its slot no longer."""

    def __init__(self, body: AsyncIterator[bytes], seconds: float) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(body, media_type="text/event-stream", headers=headers)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)


async def _written(writer: Writer, events: Events) -> Events:
    """The events, after the writer has taken each."""
    async with aclosing(events):
        async for event in events:
            writer.events_of(event)
            yield event


async def _answered(request: Request, events: Events) -> Reply:
    """The Reply of an episode, which ends early if the client leaves."""

    async def last() -> Reply:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Reply):
                    return event
        raise DataError("the episode ended without a reply")

    return await _while_connected(request, last())


async def _while_connected(request: Request, work: Coroutine[Any, Any, Reply]) -> Reply:
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise RequestError(499, "the client has left")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def on_error(_: Request, error: Exception) -> Response:
    """One JSON object for any error. The traceback of a crash goes to the log only."""
    status = _status(error)
    return refusal(status, _reason(error), {"Retry-After": "1"} if status == 429 else None)


def refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """An error in the form of OpenAI's API."""
    return json_response(msgspec.json.encode({"error": wire.openai_error(reason, status)}), status, headers)


def _reason(error: Exception) -> str:
    match error:
        case HTTPException(status_code=404):
            return f"no such route; there are {', '.join(PATHS)} and the page at /"
        case HTTPException():
            return "this method is not allowed here"
        case RequestError() | SleuthError():
            return str(error)
        case _:
            return "internal error; the traceback is in the server's log"


def _status(error: Exception) -> int:
    match error:
        case RequestError(status=status) | HTTPException(status_code=status):
            return int(status)
        case DataError() | TooLongError():
            return 400
        case SleuthError():
            return 503
        case _:
            return 500


async def _json_body(request: Request) -> bytes:
    """The body of a request that declares JSON: pages of other sites cannot send JSON without a CORS preflight."""
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        raise RequestError(415, "send Content-Type: application/json")
    return await request.body()


def _json(value: Any) -> Response:
    return json_response(msgspec.json.encode(value))
