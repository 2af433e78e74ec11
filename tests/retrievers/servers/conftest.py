"""Servers that replay recorded exchanges, and retries that do not wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from sleuth.retrievers.servers import retries
from support.recorded import Recorded, replay


@pytest.fixture
def recorded() -> Iterator[Callable[..., Recorded]]:
    """Starts servers from exchanges."""
    with ExitStack() as stack:
        yield lambda *exchanges: stack.enter_context(replay(*exchanges))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between attempts in seconds, which are recorded instead of waited for."""
    made: list[float] = []
    monkeypatch.setattr(retries, "time", SimpleNamespace(sleep=made.append, time=time.time))
    return made


@pytest.fixture(autouse=True)
def clean_memory() -> Iterator[None]:
    """Forget Qdrant's collections in memory after each test."""
    yield
    try:
        from sleuth.retrievers.servers.qdrant import open_local
    except ModuleNotFoundError:
        return
    open_local.cache_clear()
