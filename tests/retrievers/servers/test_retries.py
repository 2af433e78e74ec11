"""Retries: which failures are repeated, how long the pauses are, and what the errors say."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.servers.retries import (
    LONGEST_PAUSE_S,
    TransientError,
    failure,
    retried,
)


def failing(*errors: Exception) -> Callable[[], str]:
    """A request that raises these errors in turn and then succeeds."""
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


def test_pauses_double_and_have_jitter(pauses: list[float]):
    assert retried(failing(*[TransientError("busy")] * 9), "server", 10) == "done"
    for number, pause in enumerate(pauses):
        least = min(0.5 * 2**number, LONGEST_PAUSE_S)
        assert least <= pause <= min(least + 0.5, LONGEST_PAUSE_S)
    assert len(pauses) == 9
    assert sum(pauses[:6]) > 30  # the default number of attempts outlasts half a minute


def test_a_pause_is_at_least_what_the_server_asks_for(pauses: list[float]):
    asked = [TransientError("busy", seconds) for seconds in (4.0, 0.0, -9.0, 1e9)]
    assert retried(failing(*asked), "server", 9) == "done"
    assert pauses[0] == 4.0
    assert 1 <= pauses[1] <= 1.5
    assert 2 <= pauses[2] <= 2.5
    assert pauses[3] == LONGEST_PAUSE_S


def test_the_last_attempt_raises_and_a_refusal_is_not_repeated(pauses: list[float]):
    with pytest.raises(RetrievalError, match=r"^server failed: status 500: oops again \(tried 3 times\)$"):
        retried(failing(*[TransientError("status 500: oops\n again")] * 3), "server", 3)
    assert len(pauses) == 2
    with pytest.raises(RetrievalError, match="no"):
        retried(failing(RetrievalError("no")), "server", 3)
    with pytest.raises(KeyError):
        retried(failing(KeyError("a bug")), "server", 3)
    assert len(pauses) == 2


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_statuses_that_are_repeated(status: int):
    error = failure("server", status, "busy", "7")
    assert isinstance(error, TransientError)
    assert (str(error), error.retry_after_s) == (f"status {status}: busy", 7.0)


@pytest.mark.parametrize("status", [0, 301, 400, 401, 403, 404, 413, 422, 501])
def test_statuses_that_are_final(status: int):
    error = failure("server", status, "no\nway", "7")
    assert isinstance(error, RetrievalError)
    assert str(error) == f"server refused the request: status {status}: no way"


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("3", 3, 3),
        ("0", 0, 0),
        ("", 0, 0),
        ("soon", 0, 0),
        ("-1", 0, 0),
        ("²", 0, 0),
        ("9" * 500, 60, float("inf")),
        (formatdate(time.time() + 600, usegmt=True), 500, 600),
        (formatdate(time.time() - 600, usegmt=True), -700, -500),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str, least: float, most: float):
    error = failure("server", 503, "busy", header)
    assert isinstance(error, TransientError)
    assert least <= error.retry_after_s <= most


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": "topk is too large"}, "topk is too large"),
        ({"detail": [{"msg": "field required"}]}, "{'msg': 'field required'}"),
        ({"status": {"error": "Not found"}, "time": 0.1}, "Not found"),
        ({"error": {"root_cause": [{"reason": "a cause"}], "reason": "an effect"}, "status": 400}, "a cause"),
        ({"error": {"type": "t", "reason": "why"}, "status": 400}, "why"),
        ({"took": 1}, "{'took': 1}"),
        ("<html>\n  oops", "<html> oops"),
        ("x" * 400, "x" * 288),
        ({}, "Not Found"),
        (None, "Not Found"),
    ],
)
def test_the_error_in_a_body(body: object, message: str):
    assert str(failure("server", 404, body)) == f"server refused the request: status 404: {message}"
