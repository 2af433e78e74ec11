"""What one server takes, and how it shares its work. Plain values; every limit answers with a 4xx or 503."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sleuth.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of a server."""

    top_k: int = 3
    """Passages for a request that names no number, 1 or more; Search-R1's default."""
    max_top_k: int = 1000
    """Most passages for each query."""
    max_queries: int = 10_000
    """Most queries in one request; a GRPO step of Search-R1 sends 2,560."""
    max_passages: int = 100_000
    """Most passages that one request may ask for: queries × topk."""
    max_body_bytes: int = 16 << 20
    max_batch: int = 64
    """Most queries that the retriever gets at once."""
    max_wait_ms: float = 5.0
    """Longest that a query waits for others to be searched with, 0 or more."""
    max_searches: int = 1
    """Batches searched side by side; more than one helps where searching lets go of the interpreter or waits."""
    max_waiting: int = 20_000
    """Queries waiting to be searched beyond which a request is turned away with 503."""
    cache_bytes: int = 64 << 20
    """Memory for what was found lately; 0 = no cache."""
    body_timeout_s: float = 30.0
    """Longest that a request may take to arrive."""
    token: str = field(default="", repr=False)
    """What clients must send as `Authorization: Bearer …`; "" = nothing is asked."""

    def __post_init__(self) -> None:
        for name in ("top_k", "max_top_k", "max_queries", "max_passages", "max_body_bytes"):
            _at_least(name, getattr(self, name), 1)
        for name in ("max_batch", "max_searches", "max_waiting"):
            _at_least(name, getattr(self, name), 1)
        for name in ("max_wait_ms", "cache_bytes", "body_timeout_s"):
            _at_least(name, getattr(self, name), 0)
        if self.top_k > self.max_top_k:
            raise ConfigError(f"top_k is {self.top_k}, more than max_top_k, {self.max_top_k}")
        if not self.token.isascii() or self.token != self.token.strip() or not self.token.isprintable():
            raise ConfigError("a token is made of visible ASCII characters, as a header can carry them")


def _at_least(name: str, value: float, least: int) -> None:
    if not (math.isfinite(value) and value >= least):
        raise ConfigError(f"{name} must be at least {least}, not {value}")
