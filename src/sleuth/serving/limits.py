"""Limits of one server. A request beyond a limit gets a 4xx status, or 503 if a retry can succeed."""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from sleuth.checked import Checked, NonNegative, Positive, PositiveFloat

MAX_TOP_K = 1000  # Largest number of passages per query.
MAX_QUERIES = 10_000  # Largest number of queries per request; a GRPO step of Search-R1 sends 2,560.
MAX_PASSAGES = 100_000  # Largest number of passages per request: queries × topk.


@dataclass(frozen=True, slots=True)
class Limits(Checked):
    """Settings of a server."""

    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K)] = 3
    """Passages per query if a request names no number; Search-R1's default."""
    max_body_bytes: Positive = 16 << 20
    """Largest request body in bytes."""
    max_batch: Positive = 64
    """Queries at which a batch takes no further request."""
    max_waiting: Positive = 20_000
    """Waiting queries beyond which a request gets 503."""
    cache_bytes: NonNegative = 64 << 20
    """Memory for recent hits in bytes; 0 disables the cache."""
    timeout_s: PositiveFloat = 120.0
    """Seconds from the start of a request until its response starts."""
    token: str = field(default="", repr=False)
    """Bearer token that clients must send, visible ASCII characters; "" disables the check."""
