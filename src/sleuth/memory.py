"""Release of memory between two phases of work."""

import ctypes
import sys


def give_back() -> None:
    """Return freed memory to the system where the C library (glibc) would keep it. A no-op elsewhere.

    Useful before a phase that allocates blocks of other sizes or maps files.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
