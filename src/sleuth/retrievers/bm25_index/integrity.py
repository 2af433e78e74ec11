"""Whether the files of an index hold, byte for byte, what was written: hashes of passages, checksums of the engine's."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.index_writer import FOLDER
from sleuth.retrievers.index_files.content_hash import BLOCK, ContentHash
from sleuth.retrievers.index_files.manifest import Manifest
from sleuth.retrievers.index_files.passages import DELETED, PASSAGES, part_path, read_parts

_FOOTER = struct.Struct("<2I")
"""The end of an engine's file: size of the JSON object before it, and a fixed number."""
_FOOTER_NUMBER = 1337
_WITHOUT_FOOTER = (".json",)


def check_content(generation: Path, manifest: Manifest) -> None:
    """RetrievalError if passages or words are not those that `manifest` names. Reads all: a second for a gigabyte."""
    content = ContentHash()
    paths = [part_path(generation, PASSAGES, number) for number in range(len(read_parts(generation)))]
    try:
        for path in paths:
            for data in _blocks(path):
                content.update(data)
        left_out = (generation / DELETED).read_bytes() if DELETED in manifest.files else b""
        for name in manifest.files:
            if name.startswith(f"{FOLDER}/") and not name.endswith(_WITHOUT_FOOTER):
                _check_sum(generation / name)
    except OSError as error:
        raise RetrievalError(f"cannot read index file: {error}; build the index again") from error
    if content.hexdigest(left_out) != manifest.sha256:
        raise RetrievalError(
            f"{paths[0]}: not the passages that were indexed (hash mismatch); build the index again"
        )


def _check_sum(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _FOOTER.size))
        ending = file.read()
        length, number = _FOOTER.unpack(ending) if len(ending) == _FOOTER.size else (0, 0)
        start = size - _FOOTER.size - length
        if number == _FOOTER_NUMBER and start >= 0:
            file.seek(start)
            if _sum_of(path, start) == _told(file.read(length)):
                return
    raise RetrievalError(f"{path}: is not the file that the build wrote (checksum); build the index again")


def _sum_of(path: Path, size: int) -> int:
    found = 0
    for data in _blocks(path, size):
        found = zlib.crc32(data, found)
    return found


def _told(footer: bytes) -> object:
    try:
        return msgspec.json.decode(footer)["crc"]
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        return None


def _blocks(path: Path, size: int = -1) -> Iterator[bytes]:
    """The first `size` bytes of a file, -1 = all, some at a time."""
    with path.open("rb") as file:
        while data := file.read(BLOCK if size < 0 else min(BLOCK, size)):
            size -= len(data) if size >= 0 else 0
            yield data
