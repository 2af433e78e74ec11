"""Damaging a file of an index that may be mapped into memory."""

from pathlib import Path


def overwrite(file: Path, data: bytes) -> None:
    """Put another file in its place: to shorten a mapped file would crash whoever still reads it."""
    new = file.with_name(f"{file.name}.new")
    new.write_bytes(data)
    new.replace(file)
