"""Retries: which failures are repeated, how long the pauses are, and what the errors say."""

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest

from sleuth.retries import (
    LONGEST_PAUSE_S,
    RefusedError,
    TransientError,
    decoded,
    failure,
    retried,
    retried_async,
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
    assert retried(failing(*[TransientError("busy")] * 9), 10) == "done"
    assert len(pauses) == 9
    for number, pause in enumerate(pauses):
        least = min(0.5 * 2**number, LONGEST_PAUSE_S)
        assert least <= pause <= min(least + 0.5, LONGEST_PAUSE_S)


def test_a_pause_is_at_least_what_the_server_asks_for(pauses: list[float]):
    asked = [TransientError("busy", seconds) for seconds in (4.0, 0.0, -9.0, 1e9)]
    assert retried(failing(*asked), 9) == "done"
    assert (pauses[0], pauses[3]) == (4.0, LONGEST_PAUSE_S)
    assert 1 <= pauses[1] <= 1.5
    assert 2 <= pauses[2] <= 2.5


def test_the_last_attempt_raises_and_other_errors_are_not_repeated(pauses: list[float]):
    errors = [TransientError("oops\n again")] * 3
    with pytest.raises(TransientError, match=r"^oops again$"):
        retried(failing(*errors), 3)
    assert len(pauses) == 2
    for error in (RefusedError(404, "no"), KeyError("a bug")):
        with pytest.raises(type(error)):
            retried(failing(error), 3)
    assert len(pauses) == 2


def test_a_coroutine_is_repeated_alike(pauses: list[float]):
    attempt = failing(TransientError("busy", 7.0), TransientError("busy"))

    async def coroutine() -> str:
        return attempt()

    assert asyncio.run(retried_async(coroutine, 3)) == "done"
    assert pauses[0] == 7.0
    assert 1 <= pauses[1] <= 1.5


def test_some_statuses_are_repeated_and_the_others_final():
    for status in (408, 425, 429, 500, 502, 503, 504, 529):
        error = failure(status, "busy", "7")
        assert isinstance(error, TransientError)
        assert (str(error), error.retry_after_s) == (f"status {status}: busy", 7.0)
    for status in (0, 301, 400, 401, 403, 404, 413, 422, 501):
        error = failure(status, "no\nway", "7")
        assert isinstance(error, RefusedError)
        assert (str(error), error.status) == (f"status {status}: no way", status)


def test_retry_after_is_a_number_or_a_date():
    dates = [formatdate(time.time() + ahead, usegmt=True) for ahead in (600, -600)]
    found = [failure(503, "busy", header).retry_after_s for header in ("3", "9" * 500, *dates)]
    assert found[0] == 3
    assert found[1] > LONGEST_PAUSE_S
    assert 500 <= found[2] <= 600
    assert -700 <= found[3] <= -500
    for neither in ("", "soon", "-1", "²"):
        assert failure(503, "busy", neither).retry_after_s == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"error": "topk is too large"}', "topk is too large"),
        (b'{"error": {"message": "boom\\nand more", "code": 3}}', "boom and more"),
        (b'{"detail": [{"msg": "field required"}]}', "{'msg': 'field required'}"),
        (b'{"status": {"error": "Not found"}, "time": 0.1}', "Not found"),
        (b'{"error": {"root_cause": [{"reason": "a cause"}], "reason": "an effect"}}', "a cause"),
        (b'{"took": 1}', "{'took': 1}"),
        (b"<html>\n  oops \xff", "<html> oops \ufffd"),
        (b"x" * 400, "x" * 288),
        (b"{}", "Not Found"),
        (b"", "Not Found"),
    ],
)
def test_the_error_in_a_body(content: bytes, message: str):
    assert str(failure(404, decoded(content))) == f"status 404: {message}"
