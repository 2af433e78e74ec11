"""Memory that the C library keeps is given back when asked."""

import ctypes
import sys
from pathlib import Path

import pytest

from sleuth.memory import give_back


def resident() -> int:
    """Bytes of this process in memory."""
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="counts pages as Linux tells them")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_freed_memory_is_given_back():
    before = resident()
    blocks = [bytes([1]) * 100_000 for _ in range(2000)]  # each below the size that is given back at once
    full = resident()
    assert full - before > 150_000_000
    last = blocks.pop()  # lies on top and keeps the rest from being given back on its own
    del blocks
    kept = resident()
    give_back()
    assert resident() < full - 150_000_000
    assert last, kept


def test_without_glibc_nothing_happens(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert give_back() is None
