"""Delays before a request to a busy or failing server is retried."""

from __future__ import annotations

import email.utils
import random
import time

LONGEST_WAIT_S = 60.0


def retry_after(header: str) -> float:
    """Seconds that a Retry-After header asks for, as a number or a date; 0 if it cannot be read."""
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def pause_s(attempt: int, asked: float = 0.0, *, first: float = 0.5) -> float:
    """Seconds to wait after failed attempt `attempt` (from 0): doubled each time, at least `asked`.

    Jitter of a quarter either way keeps waiting clients from returning all at once.
    """
    doubled = first * 2.0 ** min(attempt, 16) * random.uniform(0.75, 1.25)
    return min(max(asked, doubled), LONGEST_WAIT_S)
