"""Metrics of a server, in Prometheus' text format: numbers only, no query is kept or shown.

Several workers share their numbers through files in the folder that PROMETHEUS_MULTIPROC_DIR names; it must be set
before this module is imported.
"""

from __future__ import annotations

import os
import time
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import REGISTRY
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUESTS = Histogram(
    "sleuth_request_seconds",
    "time from a request's head to the end of its response, by route and status",
    ("path", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
QUERIES = Counter("sleuth_queries", "queries of valid requests")
SEARCHED = Counter("sleuth_searched", "distinct queries that the retriever searched; the others were cached")
SEARCHES = Counter("sleuth_batches", "calls of the retriever")
WAITING = Gauge("sleuth_waiting_queries", "queries waiting to be searched", multiprocess_mode="livesum")


def render() -> bytes:
    """All metrics, summed over the workers."""
    registry: CollectorRegistry = REGISTRY
    if FOLDER_VARIABLE in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


class CountRequests:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, paths: tuple[str, ...]) -> None:
        """`paths`: routes counted by name; all others are counted as "other", so that labels stay few."""
        self._app = app
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
            _series(path, status).observe(time.perf_counter() - start)


@cache
def _series(path: str, status: int) -> Histogram:
    return REQUESTS.labels(path, status)
