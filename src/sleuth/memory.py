"""Memory between two phases of work."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Freed memory back to the system, where the C library (glibc) would keep it for later; elsewhere nothing.

    Worth it where the next phase needs its memory in other sizes, or as mapped files: what is kept counts beside it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
