"""Viewer: the web page, and the runs and episodes that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from sleuth.service.episodes import Episodes
from sleuth.service.run_folder import RunFolder
from sleuth.serving.replies import RequestError, json_response

STATIC = ("page.css", "dom.js", "source.js", "ask.js", "episodes.js", "curves.js", "app.js")
"""Files of the page; a script imports from earlier ones only."""
OPEN_PATHS = ("/", *(f"/static/{name}" for name in STATIC))
"""Paths that need no token: they hold no data."""
MEDIA = {".css": "text/css", ".js": "text/javascript", ".html": "text/html"}
SAFE = {
    # Scripts and styles from here only: text of documents could not run even if it became markup.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
MOST_ROWS = 200
"""Most episodes of one request."""


class Viewer:
    """Routes of the page over run folders and files of episodes.

    The handlers are plain functions, which Starlette calls in threads, so that no stream waits for a disk.
    """

    def __init__(
        self, runs: Sequence[RunFolder], served: Episodes | None = None, models: Sequence[str] = ()
    ) -> None:
        """`served`, `models`: answers and agents of a server, none for a page that only shows runs."""
        self.runs, self.models = list(runs), list(models)
        self._served = {} if served is None else {"served": served}

    @property
    def sources(self) -> dict[str, Episodes]:
        """Episodes by name; a run that trains adds some."""
        return self._served | {name: found for run in self.runs for name, found in run.sources().items()}

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            Route("/api/about", self._about),
            Route("/api/metrics", self._metrics),
            Route("/api/episodes", self._rows),
            Route("/api/episode", self._episode),
        ]

    def about(self) -> dict[str, Any]:
        """Models, runs and sources of the page."""
        return {
            "models": self.models,
            "runs": [run.about() for run in self.runs],
            "sources": [{"name": name, **source.progress()} for name, source in self.sources.items()],
        }

    def _page(self, _: Request) -> Response:
        return static("index.html")

    def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise RequestError(404, f"no such file {name!r}")
        return static(name)

    def _about(self, _: Request) -> Response:
        return json_response(msgspec.json.encode(self.about()))

    def _metrics(self, request: Request) -> Response:
        """Rows of metrics of one run."""
        place = _number(request, "run", 0)
        if place >= len(self.runs):
            raise RequestError(404, f"there is no run {place}")
        run = self.runs[place]
        return json_response(msgspec.json.encode({"rows": run.metrics(), **run.about()}))

    def _rows(self, request: Request) -> Response:
        """A page of a list of episodes."""
        source = self._source(request)
        flags = [flag for flag in request.query_params.get("flags", "").split(",") if flag]
        sort, text = request.query_params.get("sort", ""), request.query_params.get("text", "")
        offset, limit = _number(request, "offset", 0), min(MOST_ROWS, _number(request, "limit", 50))
        return json_response(msgspec.json.encode(source.page(flags, sort, text, offset, limit)))

    def _episode(self, request: Request) -> Response:
        """One episode, by row or by the key of its question."""
        source = self._source(request)
        if key := request.query_params.get("key"):
            rows = source.rows_of(key)
            if not rows:
                raise RequestError(404, "no episode of this question here")
            return json_response(msgspec.json.encode(source.view(rows[0])))
        if (row := _number(request, "row", 0)) not in source:
            raise RequestError(404, f"there is no episode {row}")
        return json_response(msgspec.json.encode(source.view(row)))

    def _source(self, request: Request) -> Episodes:
        name = request.query_params.get("source", "")
        if (found := self.sources.get(name)) is None:
            raise RequestError(404, f"there are no episodes {name!r}")
        return found


def static(name: str) -> Response:
    """A file of the page."""
    content = files("sleuth.service").joinpath("static", name).read_bytes()
    return Response(content, media_type=MEDIA[Path(name).suffix], headers=SAFE)


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, str(default))
    if not (given.isascii() and given.isdigit()):
        raise RequestError(400, f"{name} must be a whole number, not {given[:40]!r}")
    return int(given[:12])
