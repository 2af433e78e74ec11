"""The processor: which instructions it has."""

from pathlib import Path


def has_any(*features: str) -> bool:
    """Whether Linux lists one of these features ("amx_bf16", "avx512_bf16"); False on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return any(feature in text for feature in features)
