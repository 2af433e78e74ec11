"""Collections in memory that end with their test."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def clean_memory() -> Iterator[None]:
    """Forget Qdrant's collections in memory after each test."""
    yield
    try:
        from sleuth.retrievers.servers.qdrant import open_local
    except ModuleNotFoundError:
        return
    open_local.cache_clear()
