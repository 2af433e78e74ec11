"""Where Sleuth keeps what it can build again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$SLEUTH_CACHE, else $XDG_CACHE_HOME/sleuth, else ~/.cache/sleuth. Nothing in it is irreplaceable."""
    if given := os.environ.get("SLEUTH_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sleuth"
