"""How much a corpus holds, from the size of its files and a look at their beginning: for forecasts, never for work."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sleuth.corpora.base import Corpus
from sleuth.corpora.folder import FolderCorpus

SAMPLE = 4 << 20
"""Bytes, uncompressed, of a file that are looked at."""
BYTES_PER_PASSAGE = 650
"""Of a document cut into passages of 100 words."""

_TEXT = (".md", ".markdown", ".txt")
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".bz2": bz2.BZ2File,
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".xz": lzma.LZMAFile,
}


@dataclass(frozen=True, slots=True)
class Volume:
    """About how much there is."""

    num_passages: int
    num_bytes: int
    """Uncompressed."""


def volume(corpora: Sequence[Corpus]) -> Volume | None:
    """Of all corpora together; None if it cannot be told of one of them, such as a folder of PDF files."""
    found = [_of(corpus) for corpus in corpora]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return Volume(sum(one.num_passages for one in known), sum(one.num_bytes for one in known))


def _of(corpus: Corpus) -> Volume | None:
    path = getattr(corpus, "path", None)
    if not isinstance(path, Path):
        return None
    try:
        return _of_documents(path) if isinstance(corpus, FolderCorpus) else _of_lines(path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):  # whoever reads it will say what is wrong
        return None


def _of_documents(path: Path) -> Volume | None:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    if not all(file.suffix.lower() in _TEXT for file in files):
        return None  # what a page of PDF or HTML holds in text, its size does not tell
    sizes = [file.stat().st_size for file in files]
    return Volume(sum(-(-size // BYTES_PER_PASSAGE) for size in sizes), sum(sizes))


def _of_lines(path: Path) -> Volume:
    """A passage a line."""
    size = path.stat().st_size
    with path.open("rb") as raw:
        opener = _OPENERS.get(path.suffix.lower())
        sample: bytes = (raw if opener is None else opener(raw)).read(SAMPLE)
        used = raw.tell()
    num_lines = sum(1 for line in sample.splitlines() if line.strip())
    if len(sample) < SAMPLE:
        return Volume(num_lines, len(sample))
    share = used / size
    return Volume(round(num_lines / share), round(len(sample) / share))
