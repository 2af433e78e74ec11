"""Metrics of a server, in Prometheus' text format: numbers only, no query is kept or shown.

Several workers share their numbers through files in the folder that PROMETHEUS_MULTIPROC_DIR names; it must be set
before this module is imported.
"""

import os
import time

import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

REQUESTS = prometheus.Histogram(
    "sleuth_request_seconds",
    "time from a request's head to the end of its response, by route and status",
    ("path", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
QUERIES = prometheus.Counter("sleuth_queries", "queries of valid requests")
SEARCHED = prometheus.Counter("sleuth_searched", "queries searched; the others were cached or duplicates")
SEARCHES = prometheus.Counter("sleuth_batches", "calls of the retriever")
WAITING = prometheus.Gauge("sleuth_waiting_queries", "queries in the queue", multiprocess_mode="livesum")


async def show_metrics(_: Request) -> Response:
    """A response with all metrics, summed over the workers."""
    registry = prometheus.REGISTRY
    if FOLDER_VARIABLE in os.environ:
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(prometheus.generate_latest(registry), media_type=prometheus.CONTENT_TYPE_LATEST)


class CountRequests:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...]) -> None:
        """`paths`: routes counted by name; all others are counted as "other", so that labels stay few."""
        self._app = app
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            REQUESTS.labels(path, status).observe(time.perf_counter() - start)
