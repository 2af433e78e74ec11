"""JSON responses and errors that all routes and middleware share: an error is one JSON line."""

from collections.abc import Callable

import msgspec
from starlette.responses import Response


class RequestError(Exception):
    """A request that gets an error response; the text is one line for the client."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        """HTTP status."""


def json_response(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response with JSON `content`. A 503 asks the client to retry after a second."""
    if status == 503:
        headers = {"Retry-After": "1", **(headers or {})}
    return Response(content, status, headers, media_type="application/json")


Refuse = Callable[[int, str, dict[str, str] | None], Response]
"""Status, reason and headers → the response that refuses a request."""


def error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """A response `{"error": reason}` in one line."""
    return json_response(msgspec.json.encode({"error": " ".join(reason.split())}), status, headers)
