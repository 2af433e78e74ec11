"""Estimated size of a corpus, from the size of its files and a sample of their beginning; used for forecasts only."""

import lzma
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sleuth.corpora.base import Corpus
from sleuth.corpora.folder import FolderCorpus
from sleuth.files import OPENERS

SAMPLE = 4 << 20  # Uncompressed bytes of a file that are read.
BYTES_PER_PASSAGE = 650  # Bytes of a document cut into passages of 100 words.
_TEXT = (".md", ".markdown", ".txt")


class Volume(NamedTuple):
    """Passages and uncompressed bytes."""

    num_passages: int
    num_bytes: int


def volume(corpora: Sequence[Corpus]) -> Volume | None:
    """Return the estimated size of all corpora together; None if it is unknown, as for a folder of PDF files."""
    found = [file for corpus in corpora for file in _files(corpus)]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return Volume(sum(each.num_passages for each in known), sum(each.num_bytes for each in known))


def _files(corpus: Corpus) -> list[Volume | None]:
    path = getattr(corpus, "path", None)
    if not isinstance(path, Path):
        return [None]
    try:
        if not isinstance(corpus, FolderCorpus):
            return [_lines(path)]
        return [_document(file) for file, _ in corpus.files(lambda _: None)]
    except (OSError, EOFError, lzma.LZMAError, zlib.error):  # reported when the file is read
        return [None]


def _document(path: Path) -> Volume | None:
    if path.suffix.lower() not in _TEXT:
        return None  # the size of a PDF or HTML file says little about its text
    size = path.stat().st_size
    return Volume(-(-size // BYTES_PER_PASSAGE), size)


def _lines(path: Path) -> Volume:
    with path.open("rb") as raw:
        sample: bytes = OPENERS.get(path.suffix.lower(), lambda raw: raw)(raw).read(SAMPLE)
        used = raw.tell()
    scale = path.stat().st_size / used if len(sample) == SAMPLE else 1
    num_lines = sum(1 for line in sample.splitlines() if line.strip())
    return Volume(round(num_lines * scale), round(len(sample) * scale))
