"""Memory: what is free, and its release between two phases of work."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path


def give_back() -> None:
    """Return freed memory where the C library (glibc) or torch's CUDA allocator would keep it. A no-op elsewhere.

    Useful before a phase that allocates blocks of other sizes or maps files, and for other processes on the same GPU.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def free_ram(root: Path = Path("/")) -> int:
    """Bytes that this process can still take: of the machine, or of its control group where that has a limit.

    On other systems than Linux: all of the machine's memory. `root` is the folder that holds proc and sys.
    """
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, IndexError):
        lines = (root / "proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    group = root / "sys/fs/cgroup"
    pairs = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    for limit, used in pairs:
        with suppress(OSError, ValueError):  # no such version of control groups, or no limit ("max")
            left = int((group / limit).read_text()) - int((group / used).read_text())
            free = min(free, max(0, left + _file_cache(group / limit)))
    return free


def _file_cache(limit: Path) -> int:
    """Bytes of files that a control group holds and the kernel drops when memory is short."""
    lines = limit.with_name("memory.stat").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("inactive_file ", "active_file ")))
