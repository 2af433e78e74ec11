"""Waiting: what a header asks for, and pauses that double."""

import time
from email.utils import formatdate

import pytest

from sleuth.backoff import LONGEST_WAIT_S, pause_s, retry_after


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("0", 0.0), ("", 0.0), ("soon", 0.0), ("-1", 0.0), ("²", 0.0)]
)
def test_seconds(header: str, seconds: float):
    assert retry_after(header) == seconds


def test_dates():
    assert 50 < retry_after(formatdate(time.time() + 60, usegmt=True)) <= 60
    assert retry_after(formatdate(time.time() - 60, usegmt=True)) == 0
    assert retry_after("9" * 500) > 0


def test_pauses_double_and_end_somewhere():
    for attempt, around in ((0, 0.5), (1, 1.0), (3, 4.0)):
        assert 0.75 * around <= pause_s(attempt) <= 1.25 * around
    assert pause_s(0, asked=7.0) == 7.0
    assert pause_s(0, asked=1e9) == pause_s(10_000) == LONGEST_WAIT_S
    assert pause_s(0, first=0.01) <= 0.0125
