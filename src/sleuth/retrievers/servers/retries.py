"""Retries of requests to a server, with exponential backoff and jitter, and one-line messages of its errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeVar

from sleuth.errors import DataError, RetrievalError
from sleuth.files import decode_json

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

ATTEMPTS = 7
"""Default attempts per request: with pauses that double from 0.5 s they outlast half a minute."""
LONGEST_PAUSE_S = 60.0
"""Upper bound of the pause between two attempts."""
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same request may succeed."""


class TransientError(Exception):
    """A failed attempt that may be repeated."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        """`retry_after_s`: seconds that the server asks the client to wait."""
        super().__init__(one_line(reason))
        self.retry_after_s = retry_after_s


def retried(attempt: Callable[[], T], name: str, attempts: int) -> T:
    """The result of `attempt`, repeated after each TransientError.

    Raises RetrievalError, which shows the server as `name`, after the last of `attempts`.
    """
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

    backoff = wait_exponential(multiplier=0.5) + wait_random(0, 0.5)

    def pause_s(state: RetryCallState) -> float:
        error = state.outcome and state.outcome.exception()
        asked = error.retry_after_s if isinstance(error, TransientError) else 0.0
        return min(max(backoff(state), asked), LONGEST_PAUSE_S)

    stop, transient = stop_after_attempt(attempts), retry_if_exception_type(TransientError)
    try:
        return Retrying(stop=stop, wait=pause_s, retry=transient, reraise=True, sleep=time.sleep)(attempt)
    except TransientError as error:
        raise RetrievalError(f"{name} failed: {error} (tried {attempts} times)") from error


def failure(name: str, status: int, body: object, retry_after: str = "") -> TransientError | RetrievalError:
    """The exception for an HTTP status with a decoded body; `retry_after` is the header of that name."""
    reason = one_line(f"status {status}: {_message(body) or responses.get(status, '')}")
    if status in TRANSIENT:
        return TransientError(reason, _seconds(retry_after))
    return RetrievalError(f"{name} refused the request: {reason}")


def decoded(content: bytes) -> Any:
    """A body as JSON, else as text."""
    try:
        return decode_json(content)
    except DataError:
        return content.decode("utf-8", "replace")


def _seconds(retry_after: str) -> float:
    """Seconds in a Retry-After header, a number or a date; 0 if it is neither."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (TypeError, ValueError):
        return 0.0


def _message(body: object) -> object:
    """The error in a decoded body, of several causes the first; empty if the body is."""
    while body and isinstance(body, Mapping | list):
        keys = ("root_cause", "error", "detail", "reason", "status")
        inner = body if isinstance(body, list) else [body[key] for key in keys if body.get(key)]
        if not inner:
            break
        body = inner[0]
    return body


def one_line(message: object) -> str:
    """A message without line breaks, at most 300 characters."""
    return " ".join(str(message).split())[:300]
