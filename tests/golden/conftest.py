"""Fixtures of the comparisons with TRL."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def trl() -> Iterator[Any]:
    """The library, offline."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HF_HUB_OFFLINE", "1")
        environment.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        yield pytest.importorskip("trl")
