"""Routes of a retriever as an ASGI application: `/retrieve`, `/health`, `/info`, `/metrics`.

Overload and a failing index give 503 with Retry-After, which known clients retry; a request that the client must
change gives 4xx.
"""

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sleuth import __version__
from sleuth.errors import SleuthError
from sleuth.retrievers.base import Retriever
from sleuth.serving.batcher import Batcher
from sleuth.serving.limits import MAX_QUERIES, MAX_TOP_K, Limits
from sleuth.serving.metrics import CountRequests, show_metrics
from sleuth.serving.middleware import BearerToken, BodyLimit, Deadline
from sleuth.serving.replies import RequestError, error_response, json_response
from sleuth.serving.wire import read_request, write_reply

PATHS = ("/retrieve", "/health", "/info", "/metrics")


def build_app(retriever: Retriever, limits: Limits) -> Starlette:
    """The application over an opened retriever."""
    batcher = Batcher(retriever, limits.max_batch, limits.max_waiting, limits.cache_bytes)
    bounds = {"topk": limits.top_k, "max_topk": MAX_TOP_K, "max_queries": MAX_QUERIES}
    bounds["max_body_bytes"] = limits.max_body_bytes
    about = {"server": "sleuth", "version": __version__, "retriever": retriever.identity(), "limits": bounds}

    app = Starlette(
        routes=[
            Route("/retrieve", Retrieve(batcher, limits.top_k), methods=["POST"]),
            Route("/health", json_response(b'{"status":"ready"}'), methods=["GET"]),
            Route("/info", json_response(msgspec.json.encode(about)), methods=["GET"]),
            Route("/metrics", show_metrics),
        ],
        middleware=[
            Middleware(CountRequests, PATHS),
            Middleware(Deadline, limits.timeout_s),
            *([Middleware(BearerToken, limits.token, ("/health",))] if limits.token else []),
            Middleware(BodyLimit, limits.max_body_bytes),
        ],
        exception_handlers=dict.fromkeys((RequestError, SleuthError, HTTPException, Exception), on_error),
    )
    app.router.redirect_slashes = False
    return app


class Retrieve:
    """ASGI endpoint that searches. It skips Starlette's wrapper for functions, a tenth of the application's time."""

    def __init__(self, batcher: Batcher, top_k: int) -> None:
        self._batcher = batcher
        self._top_k = top_k

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, whose body BodyLimit delivers as one message."""
        queries, k, with_scores = read_request((await receive())["body"], self._top_k)
        found = await self._batcher.search(queries, k)
        await json_response(write_reply(found, with_scores=with_scores))(scope, receive, send)


async def on_error(request: Request, error: Exception) -> Response:
    """One JSON line for any error. The traceback of a crash goes to the log only: it may show paths or queries."""
    match error:
        case RequestError():
            return error_response(error.status, str(error))
        case SleuthError():
            return error_response(503, str(error))
        case HTTPException(status_code=404):
            return error_response(404, f"no such route; there are {', '.join(PATHS)}")
        case HTTPException():
            headers = dict(error.headers or {})
            return error_response(error.status_code, f"{request.method} is not allowed here", headers)
        case _:
            return error_response(500, "internal error; the traceback is in the server's log")
