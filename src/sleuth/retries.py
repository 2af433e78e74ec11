"""Retries of HTTP requests, with exponential backoff, jitter and Retry-After, and one-line messages of errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from http.client import responses
from typing import TYPE_CHECKING, Any, TypeVar

from sleuth.errors import DataError
from sleuth.files import decode_json

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

LONGEST_PAUSE_S = 60.0  # Upper bound of the pause between two attempts.
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, *range(520, 525), 529})
"""HTTP statuses after which the same request may succeed."""


class TransientError(Exception):
    """A failed attempt that may be repeated."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        """`retry_after_s`: seconds that the server asks the client to wait."""
        super().__init__(one_line(reason))
        self.retry_after_s = retry_after_s


class RefusedError(Exception):
    """A request that would be refused again."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(one_line(reason))
        self.status = status


def retried(attempt: Callable[[], T], attempts: int) -> T:
    """The result of `attempt`, repeated after each TransientError; the last of `attempts` raises it."""
    from tenacity import Retrying

    return Retrying(**_policy(attempts), sleep=time.sleep)(attempt)


async def retried_async(attempt: Callable[[], Awaitable[T]], attempts: int) -> T:
    """See `retried`, for a coroutine function."""
    from tenacity import AsyncRetrying

    return await AsyncRetrying(**_policy(attempts), sleep=asyncio.sleep)(attempt)


def _policy(attempts: int) -> dict[str, Any]:
    """Settings of tenacity: pauses double from 0.5 s and are never shorter than the server asks."""
    from tenacity import retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

    backoff = wait_exponential(multiplier=0.5) + wait_random(0, 0.5)

    def pause_s(state: RetryCallState) -> float:
        error = state.outcome and state.outcome.exception()
        asked = error.retry_after_s if isinstance(error, TransientError) else 0.0
        return min(max(backoff(state), asked), LONGEST_PAUSE_S)

    transient = retry_if_exception_type(TransientError)
    return {"stop": stop_after_attempt(attempts), "wait": pause_s, "retry": transient, "reraise": True}


def failure(status: int, body: object, retry_after: str = "") -> TransientError | RefusedError:
    """The exception for an HTTP status with a decoded body; `retry_after` is the header of that name."""
    reason = one_line(f"status {status}: {_message(body) or responses.get(status, '')}")
    return (
        TransientError(reason, _seconds(retry_after)) if status in TRANSIENT else RefusedError(status, reason)
    )


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
        keys = ("root_cause", "error", "message", "detail", "reason", "status")
        inner = body if isinstance(body, list) else [body[key] for key in keys if body.get(key)]
        if not inner:
            break
        body = inner[0]
    return body or ""


def one_line(message: object) -> str:
    """A message without line breaks, at most 300 characters."""
    return " ".join(str(message).split())[:300]
